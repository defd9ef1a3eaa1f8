package io.github.millracejobs;

import java.time.Duration;

/** How long jobs of a class wait until they are tried again. */
@FunctionalInterface
public interface Backoff {
    /** {@return after how long a job is due that has failed {@code retryCount} times before; null or nothing above zero: as usual} */
    Duration after(long retryCount, Throwable error, Job job);
}
