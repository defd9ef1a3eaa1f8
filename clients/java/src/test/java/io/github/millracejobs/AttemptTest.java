package io.github.millracejobs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.event.Level;

@Timeout(60)
class AttemptTest {
    private final Lines lines = new Lines();
    private final List<Object> seen = new ArrayList<>();
    private final Worker worker = Worker.builder("amqp://nowhere.invalid").logger(lines).build()
            .onFailure((job, error) -> seen.add("failure " + job.attempt() + " " + error))
            .onDeath((job, error) -> seen.add("death " + job.attempt() + " " + error));

    private Attempt.Result run(NewJob job) {
        return Attempt.of(worker, job.jid("j")).run();
    }

    @Test
    void aFailureIsLoggedWithItsStackAndTheRetry() {
        IOException error = new IOException("the mail server\nis \"away\"");
        worker.handle("Mail", job -> {
            throw error;
        });
        Attempt.Result result = run(NewJob.of("Mail"));
        assertEquals(Attempt.Status.RETRY, result.status());
        assertTrue(result.failed());
        assertTrue(Duration.ofSeconds(15).compareTo(result.retryIn()) <= 0 && result.retryIn().compareTo(Duration.ofSeconds(45)) <= 0);
        Lines.Line line = lines.only("job failed");
        assertEquals(Level.WARN, line.level());
        assertSame(error, line.error());
        assertTrue(line.text().matches("millrace: job failed  class=Mail jid=j queue=default attempt=1 next=retry retry_in=\\d+s retry_at=20\\S+Z "
                + "error_class=java.io.IOException error=\"the mail server\\\\nis \\\\\"away\\\\\"\""), line.text());
        assertEquals(List.of("failure 1 " + error), seen);
    }

    @Test
    void aDeathIsLoggedAndHooked() {
        worker.handle("Mail", job -> {
            throw new IllegalStateException("no");
        });
        Attempt.Result result = Attempt.of(worker, NewJob.of("Mail").retry(2).jid("j")).number(3).run();
        assertEquals(Attempt.Status.DEAD, result.status());
        Lines.Line line = lines.only("job failed");
        assertEquals(Level.WARN, line.level());
        assertTrue(line.text().contains("attempt=3 next=dead reason=exhausted error_class=java.lang.IllegalStateException"), line.text());
        String error = "java.lang.IllegalStateException: no";
        assertEquals(List.of("failure 3 " + error, "death 3 " + error), seen);
    }

    @Test
    void killDiscardAndDeadFalse() {
        worker.handle("Kill", job -> {
            throw new Kill("bad address", new IOException("550"));
        });
        worker.handle("Discard", job -> {
            throw new Discard("not needed");
        });
        worker.handle("Fail", job -> {
            throw new IllegalStateException();
        });
        assertEquals(Attempt.Status.DEAD, run(NewJob.of("Kill")).status());
        assertTrue(lines.only("class=Kill").text().contains("next=dead reason=killed error_class=java.io.IOException error=\"bad address\""));
        Attempt.Result discarded = run(NewJob.of("Discard"));
        assertEquals(Attempt.Status.DISCARDED, discarded.status());
        assertFalse(discarded.failed());
        assertEquals(new Lines.Line(Level.INFO, "millrace: job discarded  class=Discard jid=j queue=default attempt=1 reason=\"not needed\"", null),
                lines.only("class=Discard"));
        seen.clear();
        Attempt.Result dropped = run(NewJob.of("Fail").retry(false).dead(false));
        assertEquals(Attempt.Status.DISCARDED, dropped.status());
        assertTrue(dropped.failed());
        assertEquals(Level.WARN, lines.only("next=discarded reason=exhausted").level());
        assertEquals(2, seen.size(), "failure and death: " + seen);
    }

    @Test
    void whatTheWorkerFinds() {
        Attempt.Result unknown = run(NewJob.of("Unhandled"));
        assertEquals(WorkerException.Kind.UNKNOWN_CLASS, assertInstanceOf(WorkerException.class, unknown.error()).kind());
        Lines.Line line = lines.only("error_class=UnknownClass error=\"no handler for class Unhandled\"");
        assertNull(line.error(), "its stack would show nothing of the program");
        assertEquals(List.of("failure 1 " + unknown.error()), seen);
        worker.handle("Late", job -> { });
        Attempt.Result expired = run(NewJob.of("Late").expiresAt(Instant.EPOCH));
        assertEquals(Attempt.Status.DEAD, expired.status());
        assertEquals(Level.WARN, lines.only("job expired  class=Late jid=j queue=default attempt=1 next=dead").level());
        run(NewJob.of("Late").expiresAt(Instant.EPOCH).dead(false));
        assertEquals(Level.INFO, lines.only("job expired  class=Late jid=j queue=default attempt=1 next=discarded").level());
        assertEquals(1, seen.size(), "it was not attempted: " + seen);
    }

    @Test
    void whatLooksLikeSeveralValuesIsQuoted() {
        run(NewJob.of("A next=dead\n{}").jid("\u0085"));
        assertTrue(lines.only("job failed").text().startsWith("millrace: job failed  class=\"A next=dead\\n{}\" jid=j queue=default attempt"));
    }

    @Test
    void aTimeout() {
        worker.handle("Slow", job -> {
            assertTrue(job.await(Duration.ofSeconds(50)));
            assertEquals(Job.End.TIMEOUT, job.end());
            throw new IllegalStateException("noticed");
        }, new HandlerOptions().timeout(Duration.ofMillis(20)));
        Attempt.Result result = run(NewJob.of("Slow"));
        assertEquals(Attempt.Status.RETRY, result.status());
        WorkerException error = assertInstanceOf(WorkerException.class, result.error());
        assertEquals(WorkerException.Kind.TIMEOUT, error.kind());
        assertEquals("noticed", error.getCause().getMessage());
        assertSame(error, lines.only("error_class=Timeout error=\"ran longer than 0.02 s\"").error());
    }

    @Test
    void cancelledAndStopping() {
        worker.handle("Long", job -> {
            if (job.await(Duration.ofSeconds(50))) {
                throw job.isStopping() ? new HandBack() : new IllegalStateException("cancelled");
            }
        });
        Attempt cancelled = Attempt.of(worker, NewJob.of("Long")).cancel();
        assertEquals(Job.End.CANCELLED, cancelled.job().end());
        assertEquals(Attempt.Status.DISCARDED, cancelled.run().status());
        assertEquals(Attempt.Status.HANDED_BACK, Attempt.of(worker, NewJob.of("Long")).stopping().run().status());
        assertEquals(List.of(), seen, "no failures");
        assertEquals(Level.INFO, lines.only("job handed back").level());
        Attempt running = Attempt.of(worker, NewJob.of("Long"));
        new Thread(running::cancel).start();
        assertFalse(running.run().failed());
    }

    @Test
    void hooksThatThrowChangeNothing() {
        List<String> later = new ArrayList<>();
        worker.onFailure((job, error) -> {
            throw new StackOverflowError();
        });
        worker.onFailure((job, error) -> later.add("called"));
        worker.handle("Fail", job -> {
            throw new IllegalStateException();
        });
        assertEquals(Attempt.Status.RETRY, run(NewJob.of("Fail")).status());
        assertEquals(List.of("called"), later);
        assertInstanceOf(StackOverflowError.class, lines.only("hook failure failed").error());
    }

    @Test
    void aBackoffThatThrowsIsLogged() {
        IllegalStateException error = new IllegalStateException("in the backoff");
        worker.handle("Fail", job -> {
            throw new IOException();
        }, new HandlerOptions().retryIn((count, cause, job) -> {
            throw error;
        }));
        Attempt.Result result = run(NewJob.of("Fail"));
        assertTrue(result.retryIn().compareTo(Duration.ofSeconds(15)) >= 0, "the usual backoff: " + result.retryIn());
        assertEquals(new Lines.Line(Level.WARN, "millrace: retry_in failed, the usual backoff is used  class=Fail jid=j queue=default attempt=1", error),
                lines.only("retry_in failed"));
    }

    @Test
    void aWaitThatIsTooLongIsNotTaken() {
        Duration centuries = Duration.ofSeconds(1L << 40);
        worker.handle("Later", job -> {
            throw new RetryIn(centuries, "x");
        });
        worker.handle("Fail", job -> {
            throw new IOException();
        }, new HandlerOptions().retryIn((count, cause, job) -> centuries));
        worker.handle("Null", job -> {
            throw new RetryIn(null, "x");
        });
        for (String name : List.of("Later", "Fail", "Null")) {
            Attempt.Result result = run(NewJob.of(name));
            assertEquals(Attempt.Status.RETRY, result.status(), name);
            assertTrue(result.retryIn().compareTo(Duration.ofSeconds(45)) <= 0, name + ": the usual backoff: " + result.retryIn());
        }
        assertEquals("it returned " + centuries + ", which is too long", lines.only("retry_in failed").error().getMessage());
    }

    @Test
    void anErrorThatCannotBePrintedIsLogged() {
        worker.handle("Fail", job -> {
            throw new IllegalStateException() {
                private static final long serialVersionUID = 1;

                @Override
                public String getMessage() {
                    throw new UnsupportedOperationException();
                }
            };
        });
        assertEquals(Attempt.Status.RETRY, run(NewJob.of("Fail")).status());
        assertEquals(Level.WARN, lines.only("job failed").level());
    }

    @Test
    void attemptsAreCountedFromOne() {
        worker.handle("Count", job -> seen.add(job.attempt()));
        Attempt first = Attempt.of(worker, NewJob.of("Count"));
        first.run();
        first.next().next().run();
        assertEquals(List.of(1L, 3L), seen);
        assertEquals(first.job().jid(), first.next().job().jid());
        assertThrows(IllegalArgumentException.class, () -> first.number(0));
    }
}
