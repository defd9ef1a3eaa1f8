package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Address;
import com.rabbitmq.client.AddressResolver;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ListAddressResolver;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.impl.FrameHandler;
import com.rabbitmq.client.impl.FrameHandlerFactory;
import com.rabbitmq.client.impl.SocketFrameHandlerFactory;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URISyntaxException;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;

/** A connection. What is asked of the broker here waits for its answer: never in a thread that delivers. */
final class Link {
    /** Done when the connection is gone. */
    final CompletableFuture<Lost> lost = new CompletableFuture<>();

    private static final int HEARTBEAT = 10;
    private static final int CONNECT_TIMEOUT = 3_000;
    private static final int ANSWER_TIMEOUT = 30_000;
    private static final int LARGEST_BODY = 64 << 20;
    private static final Pattern HOST = Pattern.compile("(amqps?://(?:[^/?#]*@)?)\\[?([^]/?#]*?)]?(:\\d+)?(?=[/?#]|$)");

    private final Connection connection;

    /** A call to the library. */
    interface Call<T> {
        T make() throws IOException, TimeoutException;
    }

    private Link(Connection connection) {
        this.connection = connection;
        connection.addShutdownListener(cause -> lost.complete(new Lost(cause)));
    }

    /** Makes what connects to the host of a URL, at an address. IllegalArgumentException: that is no broker's URL. */
    static ConnectionFactory factory(String url, InetAddress address) {
        ConnectionFactory factory = new AtAddress(address);
        Matcher host = HOST.matcher(url);
        if (!host.lookingAt()) {
            throw new IllegalArgumentException("the broker's URL has no host");
        }
        String port = host.group(3) == null ? "" : host.group(3);
        try {
            // The host goes in by itself: Java takes a name with an underscore for none, and says nothing.
            factory.setUri(host.group(1) + "localhost" + port + url.substring(host.end()));
            factory.setHost(host.group(2));
            if (factory.isSSL()) { // the library would trust everybody
                factory.useSslProtocol(SSLContext.getDefault());
                factory.enableHostnameVerification();
            }
        } catch (URISyntaxException e) { // its message has the password
            throw new IllegalArgumentException("the broker's URL cannot be read: " + e.getReason(), null);
        } catch (GeneralSecurityException e) {
            throw new IllegalArgumentException("no TLS: " + e.getMessage(), e);
        }
        if (factory.getVirtualHost().isEmpty()) { // of a URL that ends with a slash; the other libraries take it so
            factory.setVirtualHost(ConnectionFactory.DEFAULT_VHOST);
        }
        int heartbeat = factory.getRequestedHeartbeat();
        factory.setRequestedHeartbeat(heartbeat > 0 ? Math.min(heartbeat, HEARTBEAT) : HEARTBEAT);
        factory.setConnectionTimeout(CONNECT_TIMEOUT);
        factory.setHandshakeTimeout(CONNECT_TIMEOUT);
        factory.setChannelRpcTimeout(ANSWER_TIMEOUT);
        factory.setThreadFactory(Waits.daemons("millrace connection"));
        // A delivery must not be answered on another connection than its own: what was built on a lost one is built anew.
        factory.setAutomaticRecoveryEnabled(false);
        factory.setTopologyRecoveryEnabled(false);
        return factory;
    }

    /**
     * Connects once, to an address of the host; {@code deliveries} runs what the library calls back. Without a user it is that of the URL, and
     * without a context for TLS the default one.
     */
    static Link open(String url, InetAddress address, String name, ExecutorService deliveries, Credentials user, SSLContext tls) throws Lost {
        ConnectionFactory factory = factory(url, address);
        if (user != null) {
            factory.setUsername(user.username());
            factory.setPassword(user.password());
        }
        if (tls != null) {
            factory.useSslProtocol(tls);
        }
        AddressResolver host = new ListAddressResolver(List.of(new Address(factory.getHost(), factory.getPort())));
        return new Link(call(() -> factory.newConnection(deliveries, host, name)));
    }

    /** Connects to an address that was chosen, for the library would take any. TLS checks the host's name, which the address has. */
    private static final class AtAddress extends ConnectionFactory {
        private final InetAddress address;

        AtAddress(InetAddress address) {
            this.address = address;
        }

        @Override
        protected synchronized FrameHandlerFactory createFrameHandlerFactory() {
            return new SocketFrameHandlerFactory(
                    getConnectionTimeout(), getSocketFactory(), getSocketConfigurator(), isSSL(), null, null, LARGEST_BODY) {
                @Override
                public FrameHandler create(Address host, String name) throws IOException {
                    Socket socket = createSocket(name);
                    try {
                        getSocketConfigurator().configure(socket);
                        socket.connect(new InetSocketAddress(address, host.getPort()), getConnectionTimeout());
                        return create(socket);
                    } catch (IOException e) {
                        socket.close();
                        throw e;
                    }
                }
            };
        }
    }

    /** Calls the library; whatever goes wrong is Lost. */
    static <T> T call(Call<T> call) throws Lost {
        try {
            return call.make();
        } catch (IOException | TimeoutException | ShutdownSignalException e) {
            throw new Lost(e);
        }
    }

    Channel channel() throws Lost {
        Channel channel = call(connection::createChannel);
        if (channel == null) {
            throw new Lost(new IOException("the connection has no channel left"));
        }
        return channel;
    }

    /** Asks whether a queue is there, on a channel of its own, which the answer may close. */
    boolean exists(String queue) throws Lost {
        Channel channel = channel();
        try {
            call(() -> channel.queueDeclarePassive(queue));
            return true;
        } catch (Lost e) {
            if (e.code() == AMQP.NOT_FOUND || e.code() == AMQP.RESOURCE_LOCKED) {
                return e.code() == AMQP.RESOURCE_LOCKED;
            }
            throw e;
        } finally {
            drop(channel);
        }
    }

    /**
     * Declares a job queue: a classic one with priorities. It names the type only where the virtual host makes queues of another type by
     * default, so that elsewhere the queue equals what other programs declare. Lost: it was refused, or not answered.
     */
    void declare(String queue) throws Lost {
        try {
            declare(queue, Map.of("x-max-priority", Wire.MAX_PRIORITY));
        } catch (Lost e) {
            if (e.code() != AMQP.PRECONDITION_FAILED) {
                throw e;
            }
            declare(queue, Map.of("x-max-priority", Wire.MAX_PRIORITY, "x-queue-type", "classic"));
        }
    }

    /** Declares on a channel of its own, which a refusal closes. */
    private void declare(String queue, Map<String, Object> arguments) throws Lost {
        Channel channel = channel();
        try {
            call(() -> channel.queueDeclare(queue, true, false, false, arguments));
        } finally {
            drop(channel);
        }
    }

    /** Done when the channel is gone. */
    static CompletableFuture<Lost> lost(Channel channel) {
        CompletableFuture<Lost> lost = new CompletableFuture<>();
        channel.addShutdownListener(cause -> lost.complete(new Lost(cause)));
        return lost;
    }

    /** Closes a channel, if it is open. */
    static void drop(Channel channel) {
        try {
            channel.abort();
        } catch (IOException | AlreadyClosedException e) {
            // it is gone
        }
    }

    /** Closes, and waits for that for some time: to a broker that does not read, not even that can be said. */
    void close(Duration within) {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        Waits.start("millrace closes", () -> {
            connection.abort((int) within.toMillis());
            closed.complete(null);
        });
        Waits.firstOf(within.plusMillis(500), closed);
    }
}
