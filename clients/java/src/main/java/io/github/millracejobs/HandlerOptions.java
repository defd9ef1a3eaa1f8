package io.github.millracejobs;

import java.time.Duration;

/** The options of a handler: {@code new HandlerOptions().timeout(Duration.ofMinutes(1))}. */
public final class HandlerOptions {
    private Duration timeout;
    private Backoff backoff;

    /** Makes options that are all unset. */
    public HandlerOptions() {}

    /** Sets how long a job may run that has no timeout of its own. */
    public HandlerOptions timeout(Duration limit) {
        this.timeout = limit;
        return this;
    }

    /** Sets the time until a failed job is retried. */
    public HandlerOptions retryIn(Backoff after) {
        this.backoff = after;
        return this;
    }

    /**
     * Returns the backoff, or null. If the backoff throws, or returns a time that is too long, that
     * is logged, and the default backoff is used.
     */
    Backoff backoff(JobLog log) {
        Backoff own = backoff;
        if (own == null) {
            return null;
        }
        return (count, error, job) -> {
            try {
                Duration after = own.after(count, error, job);
                if (after != null && after.getSeconds() >= Verdict.LONGEST_OWN) {
                    throw new IllegalArgumentException("it returned " + after + ", which is too long");
                }
                return after;
            } catch (Throwable e) {
                log.backoffFailed(job, e);
                return null;
            }
        };
    }

    /** Returns the timeout in seconds, or null. */
    Double timeout() {
        return timeout == null ? null : Double.valueOf(timeout.toMillis() / 1000.0);
    }
}
