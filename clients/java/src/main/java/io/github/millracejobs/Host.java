package io.github.millracejobs;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** Where this process runs. */
final class Host {
    static final String NAME = name();
    static final long PID = ProcessHandle.current().pid();

    private Host() {}

    private static String name() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) { // no Linux
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (IOException unknown) {
                return "localhost";
            }
        }
    }

    /** What the process has in memory; where the system does not say, the heap. */
    static long residentKb() {
        try {
            List<String> lines = Files.readAllLines(Path.of("/proc/self/status"));
            for (String line : lines) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
        } catch (IOException e) {
            // no Linux
        }
        return Runtime.getRuntime().totalMemory() / 1024;
    }
}
