package io.github.millracejobs;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The machine and the process in which the worker runs. */
final class Host {
    static final String NAME = name();
    static final long PID = ProcessHandle.current().pid();

    private Host() {}

    private static String name() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException e) { // not Linux
            try {
                return InetAddress.getLocalHost().getHostName();
            } catch (IOException unknown) {
                return "localhost";
            }
        }
    }

    /**
     * Returns the resident memory of the process, or the size of the heap if the system does not
     * report it.
     */
    static long residentKb() {
        try {
            List<String> lines = Files.readAllLines(Path.of("/proc/self/status"));
            for (String line : lines) {
                if (line.startsWith("VmRSS:")) {
                    return Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
        } catch (IOException e) {
            // Not Linux.
        }
        return Runtime.getRuntime().totalMemory() / 1024;
    }
}
