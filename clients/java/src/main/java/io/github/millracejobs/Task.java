package io.github.millracejobs;

import com.rabbitmq.client.LongString;
import java.time.Duration;
import java.util.Date;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;

/** Processes one delivery, in a thread of its lane. */
final class Task implements Runnable {
    /** Completes when the task is settled. */
    final CompletableFuture<Void> settled = new CompletableFuture<>();

    private static final Duration ATTEMPT = Duration.ofSeconds(30);
    private static final long PATIENCE = TimeUnit.HOURS.toNanos(1);

    private final Worker worker;
    private final Attachment attachment;
    private final String queue;
    private final Arrival arrival;
    private final AtomicBoolean claimed = new AtomicBoolean(); // it is being settled
    private final Map<String, Object> headers;
    private final Slot slot; // of a job that limits count, or null
    private boolean suspect; // it was redelivered, so its end must be written
    private double begun = Wire.now();
    private long begunNanos = System.nanoTime();
    private long endNanos;
    private volatile Job job; // once its handler runs
    private volatile double since; // when its handler began

    Task(Worker worker, Attachment attachment, String queue, Arrival arrival) {
        this.worker = worker;
        this.attachment = attachment;
        this.queue = queue;
        this.arrival = arrival;
        headers = headers(arrival);
        slot = Slot.of(headers);
    }

    Attachment attachment() {
        return attachment;
    }

    String queue() {
        return queue;
    }

    Job job() {
        return job;
    }

    double since() {
        return since;
    }

    @Override
    public void run() {
        try {
            work();
        } catch (Throwable e) {
            // Our own fault; requeued, the job would come again immediately, for ever.
            worker.log.error("millrace: a job could not be run, it is rejected", e);
            if (claimed.compareAndSet(false, true)) {
                attachment.answer(Outcome.Then.REJECT, arrival.tag());
            }
        } finally {
            settled.complete(null);
            worker.running.remove(this);
            attachment.pool.release();
        }
    }

    private void work() {
        Job read;
        try {
            read = Job.read(arrival.body(), queue, headers, arrival.properties().getMessageId(), sent()).use(worker.codec);
        } catch (Unreadable e) {
            worker.log.error("millrace: a message in {} is no job, it is rejected: {}", queue, e.getMessage());
            if (claimed.compareAndSet(false, true) && reportEnd()) {
                attachment.answer(Outcome.Then.REJECT, arrival.tag());
            }
            return;
        }
        Outcome outcome = mayRun();
        outcome = outcome == null ? outcome(read) : outcome;
        endNanos = System.nanoTime();
        worker.jobLog.ended(read, outcome.end());
        if (outcome.end().failed()) {
            worker.hooks.failed(read, outcome.end().error());
            Thread.interrupted(); // clears an interrupt that a hook left
        }
        if (settle(read, outcome) && suspect && outcome.then() != Outcome.Then.REQUEUE) {
            worker.ended(this, BeginKey.of(read));
        }
    }

    /**
     * Claims a job that may have begun before. Returns null if it may run, or else what becomes of
     * the delivery.
     */
    private Outcome mayRun() {
        if (slot == null || !Slot.mustClaim(headers, arrival.redelivered(), attachment.session.claimBelow)) {
            return null;
        }
        Waits.Pauses pauses = new Waits.Pauses();
        while (!attachment.lost.isDone() && !worker.isStopping()) {
            String answer = Control.claim(attachment.session, slot);
            if (answer.equals("drop")) {
                return Outcome.DROPPED;
            }
            if (answer.equals("run") && !attachment.lost.isDone() && !claimed.get()) {
                return null;
            }
            Waits.firstOf(pauses.next(), attachment.lost, worker.stopped);
        }
        return Outcome.HANDED_BACK;
    }

    private Outcome outcome(Job read) {
        int deaths = 0;
        if (arrival.redelivered() && worker.maxDeaths > 0) {
            suspect = true;
            deaths = attachment.session.ledger.begin(this, read);
            if (deaths < 0) {
                return Outcome.HANDED_BACK;
            }
        }
        begun = Wire.now();
        begunNanos = System.nanoTime();
        if (worker.maxDeaths > 0 && deaths >= worker.maxDeaths) {
            return Verdict.poison(read, deaths, begun);
        }
        if (read.isExpired(begun)) {
            return Verdict.expire(read, begun);
        }
        Registered handler = worker.handlers.get(read.className());
        if (handler == null) {
            return Verdict.judge(read, WorkerException.unknownClass(read.className()), begun, false, null, null);
        }
        return call(read, handler);
    }

    private Outcome call(Job read, Registered handler) {
        since = begun;
        // Now the job is visible: a stop sets the worker's flag first, and then the signal of each
        // job.
        job = read;
        if (worker.isStopping()) {
            read.signalStopping();
        }
        return handler.attempt(worker, read, worker::isStopping);
    }

    /**
     * Settles an outcome: publishes the record, and the end of a job that limits count. Waits for
     * the confirms, and only then answers. Returns false if the job was handed back before.
     */
    private boolean settle(Job read, Outcome outcome) {
        if (!claimed.compareAndSet(false, true)) {
            worker.jobLog.outcomeDropped(read, "handed back before it ended");
            return false;
        }
        if ((outcome.record() == null || publish(read, outcome)) && (!outcome.ends() || reportEnd())) {
            attachment.answer(outcome.then(), arrival.tag());
            if (outcome.died() != null && !attachment.lost.isDone()) {
                worker.hooks.died(read, outcome.died());
            }
        } else {
            worker.jobLog.outcomeDropped(read, "the connection is lost");
        }
        measure(read, outcome);
        return true;
    }

    private boolean publish(Job read, Outcome outcome) {
        Message message = new Message("", outcome.stream(), outcome.record(), Wire.property(read.jid()), Wire.property(read.className()),
                read.priority(), Wire.traceHeaders(read.traceparent()));
        return untilConfirmed(message, refusal -> worker.jobLog.recordRefused(read, outcome.stream(), refusal));
    }

    /** Reports that the job has ended, if limits count it. */
    private boolean reportEnd() {
        return slot == null || untilConfirmed(slot.end(worker.identity),
                refusal -> worker.log.error("millrace: the broker does not take that a job has ended, it is tried again: {}", refusal.getMessage()));
    }

    /**
     * Publishes a record until it is confirmed. Returns false if the delivery is lost, because then
     * the broker delivers the job again.
     */
    private boolean untilConfirmed(Message message, Consumer<Exception> refused) {
        Waits.Pauses pauses = new Waits.Pauses();
        while (!attachment.lost.isDone()) {
            try {
                Publisher.Answer answer = attachment.session.publisher.send(message, System.nanoTime() + PATIENCE);
                while (!answer.isDone() && !attachment.lost.isDone()) {
                    Waits.firstOf(ATTEMPT, answer.done(), attachment.lost);
                    // Clears an interrupt, which is a mistake here: the pool is not ended by
                    // interrupts.
                    Thread.interrupted();
                }
                if (!answer.isDone()) {
                    return false;
                }
                answer.get(System.nanoTime());
                return true;
            } catch (Lost e) {
                return false;
            } catch (RefusedException | TimeoutException e) {
                refused.accept(e);
            } catch (InterruptedException e) {
                continue; // this interrupt is a mistake too
            }
            Waits.firstOf(pauses.next(), attachment.lost);
        }
        return false;
    }

    private void measure(Job read, Outcome outcome) {
        if (read != null && outcome.status() != null) {
            worker.metrics.add(new Metric(read, outcome, Wire.now(), begun, Math.max(endNanos - begunNanos, 0) / 1_000_000));
        }
    }

    /** Requeues a job that has not ended. */
    void handBack() {
        if (claimed.compareAndSet(false, true)) {
            attachment.answer(Outcome.Then.REQUEUE, arrival.tag());
            if (job != null) {
                worker.jobLog.handedBackUnfinished(job);
            }
            settled.complete(null);
        }
    }

    private Double sent() {
        Date timestamp = arrival.properties().getTimestamp();
        return timestamp == null ? null : Wire.clock(timestamp.getTime() / 1000.0);
    }

    /** Returns the message's headers, with texts as Strings. */
    private static Map<String, Object> headers(Arrival arrival) {
        Map<String, Object> raw = arrival.properties().getHeaders();
        if (raw == null || raw.isEmpty()) {
            return Map.of();
        }
        Map<String, Object> headers = new HashMap<>();
        raw.forEach((name, value) -> headers.put(name, value instanceof LongString text ? text.toString() : value));
        return headers;
    }
}
