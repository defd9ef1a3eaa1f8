package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.PossibleAuthenticationFailureException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.event.Level;

/** Credentials that the broker changes between two connections, and client certificates. */
@Timeout(180)
class CredentialsTest {
    private static PrivateBroker broker;

    private final Lines lines = new Lines();
    private final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

    /** Gives a program its credentials. */
    private static final class Vault implements Callable<Credentials> {
        final AtomicInteger asked = new AtomicInteger();
        volatile Credentials given = new Credentials("rotating", "secret-one");
        volatile Exception fault;

        @Override
        public Credentials call() throws Exception {
            asked.incrementAndGet();
            if (fault != null) {
                throw fault;
            }
            return given;
        }
    }

    /** The actions of a test while its worker runs. */
    private interface Work {
        void run() throws Exception;
    }

    @BeforeAll
    static void start() throws Exception {
        broker = new PrivateBroker();
    }

    @AfterAll
    static void stop() throws Exception {
        if (broker != null) {
            broker.stop();
        }
    }

    @BeforeEach
    void empty() throws Exception {
        broker.queue("q");
    }

    /** Runs a worker that notes its jobs while an action runs. */
    private void with(WorkerBuilder builder, Work work) throws Exception {
        Worker worker = builder.queues("q").logger(lines).build().handle("Seen", job -> seen.add(job.jid()));
        Thread thread = new Thread(worker::run);
        thread.start();
        try {
            work.run();
        } finally {
            worker.close();
            thread.join();
        }
    }

    private static NewJob job(String jid) {
        return NewJob.of("Seen").queue("q").jid(jid);
    }

    private void assertSeen(String jid) throws InterruptedException {
        assertEquals(jid, seen.poll(1, TimeUnit.MINUTES));
    }

    @Test
    void thePasswordChangesBetweenTwoConnections() throws Exception {
        String url = broker.url().replace("guest:guest@", "of-the-url:unused@");
        Vault forClient = new Vault();
        Vault forWorker = new Vault();
        broker.addUser("rotating", forClient.given.password());
        with(Worker.builder(url).credentials(forWorker), () -> {
            try (Client client = Client.builder(url).credentials(forClient).build()) {
                client.enqueue(job("before"));
                assertSeen("before");
                assertEquals("1 1", forClient.asked + " " + forWorker.asked);

                // This error would elsewhere be the broker's refusal. Here it comes from the
                // program, so the program is asked again.
                Exception fault = new PossibleAuthenticationFailureException(new IllegalStateException("the vault is sealed"));
                for (Vault vault : List.of(forClient, forWorker)) {
                    vault.fault = fault;
                    vault.given = new Credentials("rotating", "secret-two");
                }
                broker.changePassword("rotating", "secret-two");
                String failed = "millrace: no connection to the broker, trying again: credentials: the vault is sealed";
                while (lines.with(failed).size() < 2) { // the test's timeout ends it
                    Thread.sleep(10);
                }
                assertEquals(Level.WARN, lines.with(failed).get(0).level());
                while (!asksInVain(client)) {
                    Thread.sleep(10);
                }
                UnreachableException error = assertThrows(UnreachableException.class, () -> client.enqueue(job("never"), Duration.ofSeconds(1)));
                assertTrue(error.getMessage().contains("credentials: the vault is sealed"), error.getMessage());
                Throwable cause = error;
                while (cause != fault && cause.getCause() != null) {
                    cause = cause.getCause();
                }
                assertSame(fault, cause);

                forClient.fault = null;
                forWorker.fault = null;
                client.enqueue(job("after"));
                String jid = seen.poll(1, TimeUnit.MINUTES);
                while ("perhaps".equals(jid)) {
                    jid = seen.poll(1, TimeUnit.MINUTES);
                }
                assertEquals("after", jid);
            }
        });
        assertTrue(lines.with("secret-").isEmpty());
        assertFalse(forClient.given.toString().contains("secret-"));
    }

    /**
     * Returns whether the client has no connection and no credentials for one. Otherwise the job
     * "perhaps" may have arrived.
     */
    private static boolean asksInVain(Client client) {
        try {
            client.enqueue(job("perhaps"), Duration.ofSeconds(1));
            return false;
        } catch (UnreachableException e) {
            return e.getMessage().contains("credentials: the vault is sealed");
        } catch (UnconfirmedException e) {
            return false; // it did not know yet that it had lost its connection
        }
    }

    @Test
    void closingAClientEndsEnqueuesThatWaitForCredentials() throws Exception {
        CountDownLatch called = new CountDownLatch(1);
        CompletableFuture<Credentials> never = new CompletableFuture<>();
        Client client = Client.builder(broker.url()).timeout(Duration.ofMinutes(10)).credentials(() -> {
            called.countDown();
            return never.get();
        }).build();
        CompletableFuture<String> enqueued = CompletableFuture.supplyAsync(() -> client.enqueue(job("never")));
        called.await();
        client.close();
        // The function has 30.
        Throwable error = assertThrows(ExecutionException.class, () -> enqueued.get(20, TimeUnit.SECONDS)).getCause();
        assertInstanceOf(ClosedException.class, error);
        never.complete(null);
    }

    @Test
    void theFirstAttemptsMayFail() throws Exception {
        class Late implements Callable<Credentials> {
            private int attempts;

            @Override
            public Credentials call() {
                switch (attempts++) {
                    case 0:
                        throw new IllegalStateException("HTTP 403");
                    case 1:
                        return null;
                    default:
                        return new Credentials("guest", "guest");
                }
            }
        }
        with(Worker.builder(broker.url()).credentials(new Late()), () -> {
            try (Client client = Client.builder(broker.url()).credentials(new Late()).build()) {
                client.enqueue(job("late"));
                assertSeen("late");
            }
        });
        assertEquals(1, lines.with("credentials: HTTP 403").size());
        assertEquals(1, lines.with("credentials: the function returned null").size());
    }

    @Test
    void aPasswordThatIsWrong() {
        Callable<Credentials> wrong = () -> new Credentials("guest", "wr0ng");
        Worker worker = Worker.builder(broker.url()).credentials(wrong).build();
        String message = assertThrows(UnreachableException.class, worker::run).getMessage();
        assertTrue(message.contains("turns us away"), message);
        assertFalse(message.contains("wr0ng"), message);
        try (Client client = Client.builder(broker.url()).credentials(wrong).build()) {
            assertThrows(UnreachableException.class, () -> client.enqueue(job("never")));
        }
    }

    @Test
    void aBrokerThatDemandsAClientCertificate() throws Exception {
        SSLContext tls = broker.tls(true);
        with(Worker.builder(broker.tlsUrl()).tls(tls), () -> {
            try (Client client = Client.builder(broker.tlsUrl()).tls(tls).build()) {
                client.enqueue(job("by TLS"));
                assertSeen("by TLS");
            }
        });
        refused(broker.tlsUrl(), broker.tls(false), "certificate_required|bad_certificate|closed|reset");
        refused(broker.tlsUrl(), SSLContext.getDefault(), "certificate is not accepted");
        refused(broker.tlsUrl().replace("localhost", "127.0.0.1"), tls, "certificate is not accepted: No subject alternative names");
        assertEquals("tls needs an amqps:// URL",
                assertThrows(IllegalArgumentException.class, () -> Client.builder(broker.url()).tls(tls).build()).getMessage());
    }

    private static void refused(String url, SSLContext tls, String why) {
        try (Client client = Client.builder(url).tls(tls).timeout(Duration.ofSeconds(8)).build()) {
            String message = assertThrows(UnreachableException.class, () -> client.enqueue(job("never"))).getMessage();
            assertTrue(message.matches("(?is).*(" + why + ").*"), message);
        }
    }
}
