package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.security.cert.CertificateException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class LinkTest {
    @Test
    void urls() {
        assertEquals("/", Link.factory("amqp://localhost", null).getVirtualHost());
        assertEquals("/", Link.factory("amqp://localhost/", null).getVirtualHost());
        assertEquals("/", Link.factory("amqp://localhost/%2f", null).getVirtualHost());
        ConnectionFactory factory = Link.factory("amqp://ann:secret@example.com:5673/jobs", null);
        assertEquals("ann secret example.com 5673 jobs", String.join(" ", factory.getUsername(), factory.getPassword(), factory.getHost(),
                Integer.toString(factory.getPort()), factory.getVirtualHost()));
        assertFalse(factory.isAutomaticRecoveryEnabled());
        assertFalse(factory.isSSL());
        assertTrue(Link.factory("amqps://localhost", null).isSSL());
        factory = Link.factory("amqps://ann:secret@rabbit_1:5673?", null);
        assertEquals("ann rabbit_1 5673", factory.getUsername() + " " + factory.getHost() + " " + factory.getPort());
        assertEquals("::1", Link.factory("amqp://ann:secret@[::1]:5673/jobs", null).getHost());
        String message = assertThrows(IllegalArgumentException.class, () -> Client.of("amqp://ann:sec%ret@a")).getMessage();
        assertFalse(message.contains("sec"), message);
    }

    @Test
    void heartbeats() {
        assertEquals(10, Link.factory("amqp://localhost", null).getRequestedHeartbeat());
        assertEquals(10, Link.factory("amqp://localhost?heartbeat=0", null).getRequestedHeartbeat());
        assertEquals(3, Link.factory("amqp://localhost?heartbeat=3", null).getRequestedHeartbeat());
    }

    @Test
    void whyNoHostIsReached() {
        ExecutorService calls = Waits.callbacks("test", () -> { });
        Hosts hosts = new Hosts(List.of("amqp://127.0.0.1:1,localhost:2"), null, null);
        String message = assertThrows(Lost.class, () -> hosts.open("test", calls)).getMessage();
        assertTrue(message.contains("127.0.0.1:1: Connection refused"), message);
        assertTrue(message.contains("127.0.0.1:2: Connection refused"), message);
    }

    @Test
    void credentialsThatHangAreAskedForOnce() throws InterruptedException {
        AtomicInteger calls = new AtomicInteger();
        CountDownLatch called = new CountDownLatch(1);
        CompletableFuture<Credentials> answer = new CompletableFuture<>();
        Hosts hosts = new Hosts(List.of("amqp://127.0.0.1:1"), () -> {
            calls.incrementAndGet();
            called.countDown();
            return answer.get();
        }, null, Duration.ofMillis(10));
        ExecutorService callbacks = Waits.callbacks("test", () -> { });
        for (int round = 0; round < 3; round++) {
            assertEquals("credentials: no answer in time", assertThrows(Lost.class, () -> hosts.open("test", callbacks)).getMessage());
        }
        assertTrue(called.await(60, TimeUnit.SECONDS));
        assertEquals(1, calls.get());
        answer.complete(new Credentials("guest", "guest"));
    }

    @Test
    void whoseCertificateIsNotAccepted() {
        IOException error = new IOException(new CertificateException("not trusted", new IOException("no path")));
        assertEquals("the broker's certificate is not accepted: not trusted", new Lost(error).getMessage());
        assertEquals("credentials: no path", Lost.noCredentials(error).getMessage(), "it may be that of the program's vault");
    }

    private static Lost closedWith(int code) {
        AMQP.Connection.Close close = new AMQP.Connection.Close.Builder().replyCode(code).replyText("why not").build();
        return new Lost(new IOException(new ShutdownSignalException(true, false, close, null)));
    }

    @Test
    void whatTheBrokerSays() {
        assertEquals(530, closedWith(530).code());
        assertTrue(closedWith(530).getMessage().contains("why not"));
        assertTrue(closedWith(530).isUnwelcome());
        assertTrue(closedWith(403).isUnwelcome());
        assertFalse(closedWith(320).isUnwelcome());
        assertEquals(320, new Lost(closedWith(320)).code());
        assertTrue(new Lost(new AuthenticationFailureException("no")).isUnwelcome());
        assertFalse(new Lost(new IOException()).isUnwelcome());
        assertEquals("IOException", new Lost(new IOException()).getMessage());
        Lost round = new Lost(List.of(new Lost("a:1", new Lost(new IOException("down"))), new Lost("b:1", closedWith(403))));
        assertTrue(round.isUnwelcome());
        assertTrue(round.getMessage().startsWith("a:1: down; b:1: "), round.getMessage());
        assertFalse(new Lost(List.of(new Lost("a:1", new Lost(new IOException())))).isUnwelcome());
    }
}
