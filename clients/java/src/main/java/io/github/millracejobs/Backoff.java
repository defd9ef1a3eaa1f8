package io.github.millracejobs;

import java.time.Duration;

/** The time until jobs of a class are retried. */
@FunctionalInterface
public interface Backoff {
    /**
     * {@return the time until the next attempt of a job that had failed {@code retryCount} times
     * before} Null, zero or a negative time means the default backoff.
     */
    Duration after(long retryCount, Throwable error, Job job);
}
