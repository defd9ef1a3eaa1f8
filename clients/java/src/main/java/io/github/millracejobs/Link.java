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

/**
 * A connection. Its methods wait for the broker's answer, so they must not be called in a delivery
 * thread.
 */
final class Link {
    /** Completes when the connection is lost. */
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

    /**
     * Returns a factory that connects to the host of a URL, at an address. Throws
     * IllegalArgumentException if it is not a broker's URL.
     */
    static ConnectionFactory factory(String url, InetAddress address) {
        ConnectionFactory factory = new AtAddress(address);
        Matcher host = HOST.matcher(url);
        if (!host.lookingAt()) {
            throw new IllegalArgumentException("the broker's URL has no host");
        }
        String port = host.group(3) == null ? "" : host.group(3);
        try {
            // The host is set separately, because Java does not accept a name with an underscore,
            // and reports no error.
            factory.setUri(host.group(1) + "localhost" + port + url.substring(host.end()));
            factory.setHost(host.group(2));
            if (factory.isSSL()) { // by default, the library trusts every certificate
                factory.useSslProtocol(SSLContext.getDefault());
                factory.enableHostnameVerification();
            }
        } catch (URISyntaxException e) { // its message has the password
            throw new IllegalArgumentException("the broker's URL cannot be read: " + e.getReason(), null);
        } catch (GeneralSecurityException e) {
            throw new IllegalArgumentException("no TLS: " + e.getMessage(), e);
        }
        // For a URL that ends with a slash, as in the other libraries.
        if (factory.getVirtualHost().isEmpty()) {
            factory.setVirtualHost(ConnectionFactory.DEFAULT_VHOST);
        }
        int heartbeat = factory.getRequestedHeartbeat();
        factory.setRequestedHeartbeat(heartbeat > 0 ? Math.min(heartbeat, HEARTBEAT) : HEARTBEAT);
        factory.setConnectionTimeout(CONNECT_TIMEOUT);
        factory.setHandshakeTimeout(CONNECT_TIMEOUT);
        factory.setChannelRpcTimeout(ANSWER_TIMEOUT);
        factory.setThreadFactory(Waits.daemons("millrace connection"));
        // A delivery must not be answered on another connection than its own. So after a loss,
        // everything on the connection is made again.
        factory.setAutomaticRecoveryEnabled(false);
        factory.setTopologyRecoveryEnabled(false);
        return factory;
    }

    /**
     * Connects once, to an address of the host. {@code deliveries} runs the library's callbacks.
     * Without a user, those of the URL are used. Without a TLS context, the default one is used.
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

    /**
     * Connects to the given address; the library would use any address of the host. TLS checks the
     * host's name, which the address contains.
     */
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

    /** Calls the library, and throws every error as Lost. */
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

    /**
     * Returns whether a queue exists. It asks on a channel of its own, because the answer may close
     * the channel.
     */
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
     * Declares a job queue: a classic queue with priorities. It sets the type only if the virtual
     * host has another default type. Elsewhere the queue then equals the queues that other programs
     * declare. Throws Lost if the broker refuses or does not answer.
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

    /** Declares on a channel of its own, because a refusal closes the channel. */
    private void declare(String queue, Map<String, Object> arguments) throws Lost {
        Channel channel = channel();
        try {
            call(() -> channel.queueDeclare(queue, true, false, false, arguments));
        } finally {
            drop(channel);
        }
    }

    /** Returns a future that completes when the channel is lost. */
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
            // It is closed already.
        }
    }

    /**
     * Closes the connection, and waits for that for some time. A broker that does not read blocks
     * even that.
     */
    void close(Duration within) {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        Waits.start("millrace closes", () -> {
            connection.abort((int) within.toMillis());
            closed.complete(null);
        });
        Waits.firstOf(within.plusMillis(500), closed);
    }
}
