package io.github.millracejobs;

import com.fasterxml.jackson.core.JsonGenerator;
import com.rabbitmq.client.AlreadyClosedException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Sends one record for each job, in arrays. Adding a record never blocks: one that does not fit is
 * dropped and counted.
 */
final class Metrics {
    private static final int KEPT = 10_000;
    private static final int AT_ONCE = 500;
    private static final long AFTER_MILLIS = 1000;
    // In ms; a longer wait means that a clock is wrong.
    private static final double LONGEST_WAIT = 1e12;

    private final String identity;
    private final ScheduledExecutorService clock;
    // Guarded by this, like the next three fields.
    private final Deque<Metric> records = new ArrayDeque<>();
    private Session session;
    private boolean timed; // a flush is scheduled
    private long dropped;

    Metrics(String identity, ScheduledExecutorService clock) {
        this.identity = identity;
        this.clock = clock;
    }

    synchronized long dropped() {
        return dropped;
    }

    /** Sets the connection to send on. */
    synchronized void attach(Session to) {
        session = to;
        flush();
    }

    synchronized void detach(Session from) {
        session = session == from ? null : session;
    }

    /** Adds a record. */
    synchronized void add(Metric metric) {
        if (records.size() >= KEPT) {
            dropped++;
            return;
        }
        records.add(metric);
        if (records.size() % AT_ONCE == 0) {
            flush();
        } else if (!timed) {
            timed = true;
            clock.schedule(this::flushTimed, AFTER_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    private synchronized void flushTimed() {
        timed = false;
        flush();
    }

    /**
     * Requests a flush of all records, if there is a connection. Otherwise they wait for the next
     * one. The caller holds the lock.
     */
    private void flush() {
        Session to = session;
        if (to != null && !records.isEmpty()) {
            to.publisher.execute(() -> send(to));
        }
    }

    /** Sends all records, and returns when they are written. */
    void flushAndWait(Session to, Duration within) {
        CompletableFuture<Void> written = new CompletableFuture<>();
        to.publisher.execute(() -> {
            send(to);
            written.complete(null);
        });
        Waits.firstOf(within, written, to.lost);
    }

    /** Called in the publishing thread, so no other thread removes records. */
    private void send(Session to) {
        while (true) {
            List<Metric> batch = first();
            if (batch.isEmpty()) {
                return;
            }
            try {
                Publisher.basicPublish(to.metrics, Message.record(Wire.METRICS, Json.write(out -> write(out, batch))), false, null, null);
            } catch (IOException | AlreadyClosedException e) {
                return; // the next connection sends them
            }
            remove(batch.size());
        }
    }

    private synchronized List<Metric> first() {
        List<Metric> batch = new ArrayList<>(Math.min(records.size(), AT_ONCE));
        for (Metric metric : records) {
            if (batch.size() == AT_ONCE) {
                break;
            }
            batch.add(metric);
        }
        return batch;
    }

    private synchronized void remove(int count) {
        for (int i = 0; i < count; i++) {
            records.removeFirst();
        }
    }

    private void write(JsonGenerator out, List<Metric> batch) throws IOException {
        out.writeStartArray();
        for (Metric metric : batch) {
            write(out, metric);
        }
        out.writeEndArray();
    }

    void write(JsonGenerator out, Metric metric) throws IOException {
        Job job = metric.job();
        out.writeStartObject();
        out.writeStringField("type", "job_metric");
        out.writeFieldName("timestamp");
        out.writeNumber(Json.time(metric.end()));
        out.writeStringField("job_class", job.className());
        out.writeStringField("queue", job.queue());
        out.writeNumberField("duration_ms", metric.tookMillis());
        out.writeStringField("status", metric.outcome().status());
        out.writeStringField("worker_identity", identity);
        out.writeStringField("jid", Wire.valid(job.jid()));
        Double enqueued = job.enqueuedAt();
        if (enqueued != null && job.retryCount() == 0) {
            double wait = Math.max((metric.begun() - enqueued) * 1000, 0);
            if (wait <= LONGEST_WAIT) {
                out.writeNumberField("wait_ms", (long) wait);
            }
        }
        out.writeNumberField("attempt", job.attempt());
        if (metric.outcome().errorClass() != null) {
            out.writeStringField("error_class", metric.outcome().errorClass());
        }
        out.writeEndObject();
    }
}
