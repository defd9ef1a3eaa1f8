package io.github.millracejobs.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.millracejobs.Attempt;
import io.github.millracejobs.Decision;
import io.github.millracejobs.Defined;
import io.github.millracejobs.Discard;
import io.github.millracejobs.InvalidException;
import io.github.millracejobs.Job;
import io.github.millracejobs.Kill;
import io.github.millracejobs.GovernedQueue;
import io.github.millracejobs.Limit;
import io.github.millracejobs.NewJob;
import io.github.millracejobs.PeriodicJob;
import io.github.millracejobs.Unique;
import io.github.millracejobs.Worker;
import io.github.millracejobs.WorkerException;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.slf4j.helpers.NOPLogger;

class HelpersTest {
    private final List<Object> seen = new ArrayList<>();
    private final Worker worker = Worker.builder("amqp://nowhere.invalid").logger(NOPLogger.NOP_LOGGER).build()
            .handle("Note", job -> seen.add(job.arg(0)))
            .handle("Break", job -> {
                throw new IOException("broken " + job.attempt());
            })
            .handle("Drop", job -> {
                throw new Discard("not needed");
            })
            .onDeath((job, error) -> seen.add("dead: " + error.getMessage()));

    @Test
    void inline() {
        Inline client = new Inline(worker);
        assertEquals(32, client.enqueue(NewJob.of("Note", List.of(1, 2)).queue("low")).length());
        assertEquals(List.of(List.of(1L, 2L)), seen, "args went through JSON");
        assertThrows(IOException.class, () -> client.enqueue("Break"));
        assertThrows(WorkerException.class, () -> client.enqueue("Unhandled"));
        assertEquals(32, client.enqueue("Drop").length(), "to discard is no failure");
        assertThrows(InvalidException.class, () -> client.enqueue("Note", new Object()));
        String message = assertThrows(NullPointerException.class, () -> new Inline(null)).getMessage();
        assertEquals("there is no worker to run jobs: use new Inline(worker)", message);
    }

    @Test
    void periodicJobsAreKept() {
        Fake fake = new Fake();
        PeriodicJob a = PeriodicJob.of("a", NewJob.of("A")).every(Duration.ofMinutes(1));
        PeriodicJob b = PeriodicJob.of("b", NewJob.of("B")).cron("@daily");
        assertEquals(new Defined(List.of("a", "b"), List.of(), List.of(), 0), fake.define("app", List.of(a, b)));
        assertEquals(List.of(a, b), fake.periodic("app"));
        PeriodicJob changed = PeriodicJob.of("a", NewJob.of("A")).every(Duration.ofMinutes(1)).paused();
        assertEquals(new Defined(List.of(), List.of("a"), List.of("b"), 0), fake.define("app", List.of(changed)));
        assertThrows(InvalidException.class, () -> fake.define("app", List.of(PeriodicJob.of("c", NewJob.of("")))));
        assertEquals(List.of(changed), fake.periodic("app"));
        assertEquals(List.of(), fake.periodic("other"));
        Inline inline = new Inline(worker);
        assertEquals(new Defined(List.of("a"), List.of(), List.of(), 0), inline.define("app", List.of(a)));
        assertEquals(List.of(a), inline.periodic("app"));
    }

    @Test
    void limitsAndGatesAreKept() {
        Fake fake = new Fake();
        Limit a = Limit.of("a").concurrency(1);
        Limit b = Limit.of("b").rate(Limit.Rate.of(1, Duration.ofSeconds(1)));
        PeriodicJob p = PeriodicJob.of("p", NewJob.of("A")).cron("@daily");
        assertEquals(new Defined(List.of("p", "a", "b"), List.of(), List.of(), 0), fake.define("app", List.of(p), List.of(a, b)));
        Limit changed = Limit.of("a").concurrency(2);
        assertEquals(new Defined(List.of(), List.of("a"), List.of("b"), 0), fake.define("app", null, List.of(changed)));
        assertEquals(List.of(changed), fake.limits("app"));
        assertEquals(List.of(p), fake.periodic("app"));
        assertEquals(List.of(), new Inline(worker).limits("app"));
        GovernedQueue q = GovernedQueue.of("q").ahead(2);
        assertEquals(new Defined(List.of("q"), List.of(), List.of(), 0), fake.define("app", null, null, List.of(q)));
        assertThrows(InvalidException.class, () -> fake.define("app", null, null, List.of(GovernedQueue.of(""))));
        assertEquals(List.of(q), fake.queues("app"));
        assertEquals(new Defined(List.of(), List.of(), List.of("q"), 0), fake.define("app", null, null, List.of()));
        fake.enqueue(NewJob.of("A").limitKey("k"));
        fake.enqueue(NewJob.of("A").limited(true));
        fake.enqueue("A");
        assertEquals(List.of(true, true, false), fake.jobs().stream().map(each -> each.job().isLimited()).toList());
        assertEquals("k", fake.jobs().get(0).job().limitKey());
    }

    @Test
    void aDuplicateIsNotEnqueued() {
        Worker failing = Worker.builder().logger(NOPLogger.NOP_LOGGER).build();
        List<Decision> during = new ArrayList<>();
        Fake fake = new Fake(failing);
        failing.handle("A", job -> {
            if (job.attempt() == 1) {
                during.add(fake.enqueueUnique(NewJob.of("A", 1)));
                throw new IllegalStateException("fails");
            }
        });
        failing.handle("Kill", job -> {
            throw new Kill("no");
        });
        Decision first = fake.enqueueUnique(NewJob.of("A", 1));
        assertEquals(new Decision(first.jid(), true), fake.enqueueUnique(NewJob.of("A", 1).unique(Unique.of())));
        assertFalse(fake.enqueueUnique(NewJob.of("A", "1")).duplicate());
        fake.clear();
        String jid = fake.enqueueUnique(NewJob.of("A", 1)).jid();
        fake.enqueue(NewJob.of("A", 1).unique(Unique.of()));
        assertEquals(1, fake.jobs().size());
        fake.drainWithRetries();
        assertEquals(List.of(new Decision(jid, true)), during);
        assertFalse(fake.enqueueUnique(NewJob.of("A", 1)).duplicate());
        fake.clear();

        Unique customer = Unique.by("args.0.customer").replace();
        fake.enqueue(NewJob.of("A", Map.of("customer", 1, "n", 1)).unique(customer));
        Instant at = Instant.ofEpochSecond(2_000_000_000);
        assertFalse(fake.enqueueUnique(NewJob.of("A", Map.of("customer", 1, "n", 2)).unique(customer).at(at)).duplicate());
        assertEquals(List.of(at), fake.jobs().stream().map(Enqueued::at).toList());
        fake.clear();

        fake.enqueue(NewJob.of("Kill").unique(Unique.key("hour").forAtLeast(Duration.ofHours(1))));
        fake.enqueue(NewJob.of("Kill").unique(Unique.key("dead")));
        assertThrows(DrainException.class, fake::drain);
        assertTrue(fake.enqueueUnique(NewJob.of("A").unique(Unique.key("hour"))).duplicate());
        assertFalse(fake.enqueueUnique(NewJob.of("A").unique(Unique.key("dead"))).duplicate());
    }

    @Test
    void aKeyIsFreeWhenTheJobRuns() {
        Worker nested = Worker.builder().build();
        Inline inline = new Inline(nested);
        NewJob waiting = NewJob.of("A").unique(Unique.of().whileWaiting());
        List<Decision> during = new ArrayList<>();
        nested.handle("A", job -> {
            if (during.isEmpty()) {
                during.add(null);
                during.add(inline.enqueueUnique(waiting));
            }
        });
        inline.enqueue(waiting);
        assertFalse(during.get(1).duplicate());
        assertFalse(inline.enqueueUnique(waiting).duplicate());
    }

    @Test
    void fake() {
        Fake client = new Fake(worker);
        client.enqueue("Note", "now");
        client.enqueueAt(Instant.ofEpochSecond(12, 500_000_000), NewJob.of("Note", "later"));
        client.enqueueBulk(List.of(NewJob.of("Note", "many")));
        assertEquals(Arrays.asList(null, Instant.ofEpochSecond(12, 500_000_000), null), client.jobs().stream().map(Enqueued::at).toList());
        client.enqueue("Drop");
        assertEquals(List.of("now", "later", "many"), client.jobs("Note").stream().map(enqueued -> enqueued.job().arg(0)).toList());
        assertEquals(List.of(), client.jobs("Break"));
        assertEquals(4, client.drain());
        assertEquals(List.of("now", "later", "many"), seen);
        client.enqueueIn(Duration.ofHours(1), NewJob.of("Note", "x"));
        client.clear();
        assertEquals(0, client.drain());
    }

    @Test
    void jobsThatAreDueLater() {
        Fake client = new Fake(worker);
        Instant before = Instant.now();
        client.enqueueAt(Instant.EPOCH, "Note", "at", 1);
        client.enqueueIn(Duration.ofHours(1), "Note", "in");
        assertEquals(List.of(List.of("at", 1L), List.of("in")), client.jobs().stream().map(enqueued -> enqueued.job().args()).toList());
        assertEquals(Instant.EPOCH, client.jobs().get(0).at());
        long minutes = Duration.between(before, client.jobs().get(1).at()).toMinutes();
        assertTrue(60 <= minutes && minutes <= 61, "due in " + minutes + " minutes");
    }

    @Test
    void aFakeWithoutAWorkerCollects() {
        for (Fake client : List.of(new Fake(), new Fake(null))) {
            String jid = client.enqueue(NewJob.of("Note", "now").queue("low"));
            assertThrows(InvalidException.class, () -> client.enqueue("Note", new Object()));
            String message = assertThrows(IllegalStateException.class, client::drain).getMessage();
            assertEquals("there is no worker to run jobs: use new Fake(worker)", message);
            assertThrows(IllegalStateException.class, client::drainWithRetries);
            assertEquals(1, client.jobs().size());
            Job job = client.jobs("Note").get(0).job();
            assertEquals(List.of(jid, "low", "now"), List.of(job.jid(), job.queue(), job.arg(0)));
        }
    }

    @Test
    void whatFailsHoldsNothingUp() {
        Fake client = new Fake(worker);
        client.enqueueBulk(List.of(NewJob.of("Break"), NewJob.of("Drop"), NewJob.of("Unhandled").retry(false), NewJob.of("Note", "last")));
        DrainException error = assertThrows(DrainException.class, client::drain);
        assertEquals(List.of("dead: no handler for class Unhandled", "last"), seen);
        assertEquals(List.of("Break", "Unhandled"), error.failures().stream().map(failure -> failure.job().className()).toList());
        assertEquals(List.of(Attempt.Status.RETRY, Attempt.Status.DEAD), error.failures().stream().map(Attempt.Result::status).toList());
        assertEquals("broken 1", error.getCause().getMessage());
        assertEquals("no handler for class Unhandled", error.getSuppressed()[0].getMessage());
        assertTrue(error.getMessage().startsWith("2 of 4 jobs failed, the first is Break "), error.getMessage());
        assertEquals(0, client.drain());
    }

    @Test
    void retriesAndDeath() {
        Fake client = new Fake(worker);
        String jid = client.enqueue(NewJob.of("Break").retry(2));
        client.enqueue("Drop");
        List<Attempt.Result> results = client.drainWithRetries();
        assertEquals(List.of(Attempt.Status.RETRY, Attempt.Status.DISCARDED, Attempt.Status.RETRY, Attempt.Status.DEAD),
                results.stream().map(Attempt.Result::status).toList());
        assertEquals(List.of(1L, 1L, 2L, 3L), results.stream().map(result -> result.job().attempt()).toList());
        assertEquals(jid, results.get(3).job().jid());
        assertEquals(List.of("dead: broken 3"), seen);
        assertEquals(List.of(), client.jobs());
    }

    @Test
    void middleware() {
        worker.use((job, next) -> {
            seen.add("before");
            next.run(job);
        });
        Fake client = new Fake(worker).use((job, next) -> job.args().size() < 2 ? next.enqueue(job.queue("changed")) : null);
        NewJob own = NewJob.of("Note", 1);
        assertNull(client.enqueue("Note", 1, 2));
        client.enqueue(own);
        assertEquals("changed", client.jobs().get(0).job().queue());
        assertEquals("default", own.queue(), "the caller's stays as it was");
        client.drain();
        assertEquals(List.of("before", 1L), seen);
    }
}
