package io.github.millracejobs;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Passes data between clients and the broker. While it is muted, it drops the broker's data. It
 * counts the messages that the broker returns.
 */
final class MutedProxy implements AutoCloseable {
    private final int broker;
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final AtomicInteger returns = new AtomicInteger();
    private volatile boolean muted;

    MutedProxy(String url) throws IOException {
        broker = URI.create(url).getPort();
        Waits.start("proxy", this::accept);
    }

    String url() {
        return "amqp://guest:guest@127.0.0.1:" + listener.getLocalPort();
    }

    int returns() {
        return returns.get();
    }

    void mute() {
        muted = true;
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), broker);
                Waits.start("proxy to the broker", () -> pass(client, server, false));
                Waits.start("proxy from the broker", () -> pass(server, client, true));
            }
        } catch (IOException e) {
            // It is closed.
        }
    }

    private void pass(Socket from, Socket to, boolean answers) {
        try (from; to) {
            byte[] bytes = new byte[8192];
            for (int count = from.getInputStream().read(bytes); count >= 0; count = from.getInputStream().read(bytes)) {
                if (answers && new String(bytes, 0, count, StandardCharsets.ISO_8859_1).contains("NO_ROUTE")) {
                    returns.incrementAndGet();
                }
                if (!answers || !muted) {
                    to.getOutputStream().write(bytes, 0, count);
                }
            }
        } catch (IOException e) {
            // One of them is closed.
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }
}
