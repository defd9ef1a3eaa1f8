package io.github.millracejobs;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/** Takes jobs: a {@link Client}, or in tests a replacement without a broker. */
public interface Enqueuer {
    /** Enqueues a job, and returns its jid, or null if middleware did not publish it. */
    String enqueue(NewJob job);

    /** Enqueues a job without options, and returns its jid. */
    default String enqueue(String className, Object... args) {
        return enqueue(NewJob.of(className, args));
    }

    /**
     * Enqueues a job that is due at a given time, and returns its jid. If the time is past, the job
     * is due immediately.
     */
    default String enqueueAt(Instant time, NewJob job) {
        return enqueue(job.copy().at(time));
    }

    /** Enqueues a job that is due after some time, and returns its jid. */
    default String enqueueIn(Duration delay, NewJob job) {
        return enqueue(job.copy().in(delay));
    }

    /** Enqueues a job without options that is due at a given time, and returns its jid. */
    default String enqueueAt(Instant time, String className, Object... args) {
        return enqueueAt(time, NewJob.of(className, args));
    }

    /** Enqueues a job without options that is due after some time, and returns its jid. */
    default String enqueueIn(Duration delay, String className, Object... args) {
        return enqueueIn(delay, NewJob.of(className, args));
    }

    /**
     * Enqueues a job, and returns which job stays if there is one with the same key already, or null
     * if middleware did not publish it. A job that is not {@linkplain NewJob#unique(Unique) unique} is
     * made unique by the defaults.
     */
    Decision enqueueUnique(NewJob job);

    /**
     * Delays any AMQP message until a given time, and returns the jid of the job that delivers it. At
     * that time a sidecar publishes the message to its exchange, with one more header, {@code
     * millrace-jid}. Its setting {@code --deliver-to} must match the name of the exchange. To set
     * options of the job, enqueue {@link NewMessage#job}.
     */
    default String publishAt(Instant time, NewMessage message) {
        return enqueueAt(time, message.job());
    }

    /** Delays any AMQP message for some time: see {@link #publishAt}. */
    default String publishIn(Duration delay, NewMessage message) {
        return enqueueIn(delay, message.job());
    }

    /**
     * Enqueues many jobs, in order, and returns their jids when all are answered. Throws
     * BulkException if some were not enqueued.
     */
    List<String> enqueueBulk(Collection<NewJob> jobs);
}
