package io.github.millracejobs;

import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Assumptions;

/**
 * A private RabbitMQ for tests, on 127.0.0.1, from the installed package. It has what a sidecar
 * would declare, as far as tests need it.
 */
final class PrivateBroker {
    private static final List<String> SERVERS = List.of("/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/rabbitmq/sbin/rabbitmq-server");
    private static final String CONF = """
            listeners.tcp.1 = 127.0.0.1:%d
            listeners.ssl.1 = 127.0.0.1:%d
            ssl_options.cacertfile = %3$s/ca.pem
            ssl_options.certfile = %3$s/server.pem
            ssl_options.keyfile = %3$s/server.key
            ssl_options.verify = verify_peer
            ssl_options.fail_if_no_peer_cert = true
            disk_free_limit.absolute = 10MB
            log.console = false
            """;

    private static final String STORE_PASSWORD = "changeit";

    private final Path dir;
    private final int port = freePorts();
    private final int tlsPort = port + 1;
    private final int epmd = port + 2;
    private final int distribution = port + 3;
    private final Path ctl;
    private final Process names;
    private final Process node;
    private final Connection connection;

    /** Starts a broker. The tests are skipped if no RabbitMQ is installed. */
    PrivateBroker() throws Exception {
        String server = SERVERS.stream().filter(path -> new File(path).isFile()).findFirst().orElse(null);
        Assumptions.assumeTrue(server != null, "RabbitMQ is not installed");
        dir = Files.createTempDirectory("millrace-java-");
        ctl = Path.of(server).resolveSibling("rabbitmqctl");
        certify();
        Files.writeString(dir.resolve("rabbitmq.conf"), String.format(CONF, port, tlsPort, dir));
        Files.writeString(dir.resolve("enabled_plugins"), "[].\n");
        Files.writeString(dir.resolve("inetrc"), String.format("{host, {127,0,0,1}, [\"localhost\", \"%s\"]}.%n{lookup, [file, native]}.%n",
                InetAddress.getLocalHost().getHostName()));
        Path cookie = Files.writeString(dir.resolve(".erlang.cookie"), UUID.randomUUID().toString().replace("-", ""), StandardCharsets.US_ASCII);
        Files.setPosixFilePermissions(cookie, PosixFilePermissions.fromString("r--------"));
        names = start("epmd", "-port", Integer.toString(epmd), "-address", "127.0.0.1");
        await(epmd);
        node = start(server);
        await(port);
        connection = connect();
        try (Channel channel = connection.createChannel()) {
            channel.exchangeDeclare(Wire.DIRECT, BuiltinExchangeType.DIRECT, true);
            for (String stream : List.of(Wire.SCHEDULED, Wire.RETRIES, Wire.DEAD, Wire.HEARTBEATS, Wire.METRICS)) {
                channel.queueDeclare(stream, true, false, false, null);
            }
        }
    }

    private Process start(String... command) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command).directory(dir.toFile()).redirectErrorStream(true)
                .redirectOutput(dir.resolve(new File(command[0]).getName() + ".out").toFile());
        Map<String, String> env = builder.environment();
        env.keySet().removeIf(name -> name.startsWith("RABBITMQ_") || name.startsWith("ERL_"));
        env.putAll(Map.of("HOME", dir.toString(), "LANG", "C.UTF-8", "ERL_EPMD_PORT", Integer.toString(epmd), "ERL_EPMD_ADDRESS", "127.0.0.1",
                "ERL_INETRC", dir.resolve("inetrc").toString(),
                "ERL_FLAGS", "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"));
        env.putAll(Map.of("RABBITMQ_NODENAME", "millrace-java@localhost", "RABBITMQ_CONF_ENV_FILE", dir.resolve("none").toString(),
                "RABBITMQ_CONFIG_FILE", dir.resolve("rabbitmq.conf").toString(), "RABBITMQ_ADVANCED_CONFIG_FILE", dir.resolve("none.config").toString(),
                "RABBITMQ_ENABLED_PLUGINS_FILE", dir.resolve("enabled_plugins").toString(), "RABBITMQ_MNESIA_BASE", dir.resolve("data").toString(),
                "RABBITMQ_LOG_BASE", dir.resolve("log").toString(), "RABBITMQ_DIST_PORT", Integer.toString(distribution),
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 2:2 +B i +sbwt none +sbwtdcpu none +sbwtdio none",
                // The script becomes the node, so the process is the node's.
                "RUNNING_UNDER_SYSTEMD", "true"));
        return builder.start();
    }

    /** Writes a CA, and certificates signed by it for the broker and for a client. */
    private void certify() throws Exception {
        request("ca", "-x509", "-days", "2", "-out", "ca.pem");
        Files.writeString(dir.resolve("names"), "subjectAltName=DNS:localhost\n");
        for (String name : List.of("server", "client")) {
            request(name, "-out", name + ".csr");
            run("openssl", "x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-extfile", "names", "-out", name + ".pem");
        }
        run("openssl", "pkcs12", "-export", "-in", "client.pem", "-inkey", "client.key", "-out", "client.p12", "-passout", "pass:" + STORE_PASSWORD);
    }

    private void request(String name, String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("openssl", "req"));
        command.addAll(List.of(arguments));
        command.addAll(List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", name + ".key",
                "-subj", "/CN=millrace test " + name));
        run(command.toArray(String[]::new));
    }

    /** Runs a program, and waits until it has ended without an error. */
    private void run(String... command) throws Exception {
        if (start(command).waitFor() != 0) {
            String output = Files.readString(dir.resolve(new File(command[0]).getName() + ".out"));
            throw new IOException(String.join(" ", List.of(command).subList(0, 2)) + ": " + output);
        }
    }

    void changePassword(String user, String password) throws Exception {
        run(ctl.toString(), "change_password", user, password);
        run(ctl.toString(), "close_all_user_connections", user, "rotated");
    }

    void addUser(String user, String password) throws Exception {
        run(ctl.toString(), "add_user", user, password);
        run(ctl.toString(), "set_permissions", user, ".*", ".*", ".*");
    }

    /**
     * Returns the URL for TLS. The broker requires a client certificate there, and its own is for
     * the name in the URL.
     */
    String tlsUrl() {
        return "amqps://guest:guest@localhost:" + tlsPort;
    }

    /** Returns TLS that trusts the broker, with a client certificate or without one. */
    SSLContext tls(boolean certificate) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (InputStream ca = Files.newInputStream(dir.resolve("ca.pem"))) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(ca));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        char[] password = STORE_PASSWORD.toCharArray();
        keys.init(KeyStore.getInstance(dir.resolve("client.p12").toFile(), password), password);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(certificate ? keys.getKeyManagers() : null, trust.getTrustManagers(), null);
        return context;
    }

    /**
     * Returns the first of four free ports, below the range that the kernel uses for outgoing
     * connections.
     */
    private static int freePorts() {
        for (;;) {
            int first = ThreadLocalRandom.current().nextInt(14_000, 19_900);
            if (IntStream.range(first, first + 4).allMatch(PrivateBroker::isFree)) {
                return first;
            }
        }
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
            return socket.isBound();
        } catch (IOException e) {
            return false;
        }
    }

    private void await(int listener) throws Exception {
        for (long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(2); ; Thread.sleep(50)) {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress("127.0.0.1", listener), 1000);
                return;
            } catch (IOException e) {
                if (System.nanoTime() > until) {
                    throw new IOException("RabbitMQ does not start: " + dir, e);
                }
            }
        }
    }

    /** Connects, repeatedly, because a node that listens may still be starting. */
    private Connection connect() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url());
        for (long until = System.nanoTime() + TimeUnit.MINUTES.toNanos(1); ; Thread.sleep(50)) {
            try {
                return factory.newConnection();
            } catch (IOException | TimeoutException e) {
                if (System.nanoTime() > until) {
                    throw e;
                }
            }
        }
    }

    String url() {
        return "amqp://guest:guest@127.0.0.1:" + port;
    }

    /** Declares a queue of jobs, empty. */
    void queue(String name) throws IOException, TimeoutException {
        try (Channel channel = connection.createChannel()) {
            channel.queueDeclare(Wire.QUEUE_PREFIX + name, true, false, false, Map.of("x-max-priority", Wire.MAX_PRIORITY));
            channel.queuePurge(Wire.QUEUE_PREFIX + name);
            // Last, because a client may already be publishing to it.
            channel.queueBind(Wire.QUEUE_PREFIX + name, Wire.DIRECT, name);
        }
    }

    /** Returns how many messages of a queue are ready. */
    int ready(String queue) {
        try (Channel channel = connection.createChannel()) {
            return (int) channel.messageCount(queue);
        } catch (IOException | TimeoutException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Takes all messages of a queue, and returns their ids. */
    List<String> take(String queue) throws IOException, TimeoutException {
        return messages(queue).stream().map(got -> got.getProps().getMessageId()).toList();
    }

    /** Takes all messages of a queue. */
    List<GetResponse> messages(String queue) throws IOException, TimeoutException {
        List<GetResponse> messages = new ArrayList<>();
        try (Channel channel = connection.createChannel()) {
            for (var got = channel.basicGet(queue, true); got != null; got = channel.basicGet(queue, true)) {
                messages.add(got);
            }
        }
        return messages;
    }

    /** Suspends the node, with its connections open. Its threads stop some time after the signal. */
    void freeze() throws Exception {
        signal("-STOP");
        while (!isStopped()) {
            Thread.sleep(1);
        }
    }

    private boolean isStopped() throws IOException {
        try (Stream<Path> threads = Files.list(Path.of("/proc", Long.toString(node.pid()), "task"))) {
            for (Path thread : threads.toList()) {
                String stat = Files.readString(thread.resolve("stat"));
                if (stat.charAt(stat.lastIndexOf(')') + 2) != 'T') {
                    return false;
                }
            }
        }
        return true;
    }

    void thaw() throws Exception {
        signal("-CONT");
    }

    private void signal(String name) throws Exception {
        if (new ProcessBuilder("kill", name, Long.toString(node.pid())).start().waitFor() != 0) {
            throw new IOException("kill " + name + " failed");
        }
    }

    void stop() throws Exception {
        connection.abort(1000);
        for (Process process : List.of(node, names)) {
            process.destroyForcibly().waitFor();
        }
        try (Stream<Path> files = Files.walk(dir)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
