package io.github.millracejobs;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;

/** What takes jobs: a {@link Client}, or in tests one without a broker. */
public interface Enqueuer {
    /** Enqueues a job, and returns its jid; null if middleware did not let it pass. */
    String enqueue(NewJob job);

    /** Enqueues a job without options, and returns its jid. */
    default String enqueue(String className, Object... args) {
        return enqueue(NewJob.of(className, args));
    }

    /** Enqueues a job that is due at a time, and returns its jid. One in the past is due at once. */
    default String enqueueAt(Instant time, NewJob job) {
        return enqueue(job.copy().at(time));
    }

    /** Enqueues a job that is due after some time, and returns its jid. */
    default String enqueueIn(Duration delay, NewJob job) {
        return enqueue(job.copy().in(delay));
    }

    /** Enqueues a job without options that is due at a time, and returns its jid. */
    default String enqueueAt(Instant time, String className, Object... args) {
        return enqueueAt(time, NewJob.of(className, args));
    }

    /** Enqueues a job without options that is due after some time, and returns its jid. */
    default String enqueueIn(Duration delay, String className, Object... args) {
        return enqueueIn(delay, NewJob.of(className, args));
    }

    /** Enqueues many jobs, in order, and returns their jids when all are answered. BulkException: some were not enqueued. */
    List<String> enqueueBulk(Collection<NewJob> jobs);
}
