package io.github.millracejobs;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AlreadyClosedException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.net.URISyntaxException;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;

/** A connection. What is asked of the broker here waits for its answer: never in a thread that delivers. */
final class Link {
    /** Done when the connection is gone. */
    final CompletableFuture<Lost> lost = new CompletableFuture<>();

    private static final int HEARTBEAT = 10;
    private static final int CONNECT_TIMEOUT = 15_000;
    private static final int ANSWER_TIMEOUT = 30_000;

    private final Connection connection;

    /** A call to the library. */
    interface Call<T> {
        T make() throws IOException, TimeoutException;
    }

    private Link(Connection connection) {
        this.connection = connection;
        connection.addShutdownListener(cause -> lost.complete(new Lost(cause)));
    }

    /** Makes what connects. IllegalArgumentException: that is no broker's URL. */
    static ConnectionFactory factory(String url) {
        ConnectionFactory factory = new ConnectionFactory();
        try {
            factory.setUri(url);
            if (factory.isSSL()) { // the library would trust everybody
                factory.useSslProtocol(SSLContext.getDefault());
                factory.enableHostnameVerification();
            }
        } catch (URISyntaxException | GeneralSecurityException e) {
            throw new IllegalArgumentException("no broker's URL: " + e.getMessage(), e);
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

    /** Connects once; {@code deliveries} runs what the library calls back. */
    static Link open(ConnectionFactory factory, String name, ExecutorService deliveries) throws Lost {
        return new Link(call(() -> factory.newConnection(deliveries, name)));
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

    /** Declares a job queue. Lost: it was refused, or nobody answers. */
    void declare(String queue) throws Lost {
        Channel channel = channel();
        try {
            call(() -> channel.queueDeclare(queue, true, false, false, Map.of("x-max-priority", Wire.MAX_PRIORITY)));
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
