package io.github.millracejobs;

import java.time.Duration;

/** What may be said of a handler: {@code new HandlerOptions().timeout(Duration.ofMinutes(1))}. */
public final class HandlerOptions {
    private Duration timeout;
    private Backoff backoff;

    /** Says nothing. */
    public HandlerOptions() {}

    /** Sets how long a job may run that does not say itself. */
    public HandlerOptions timeout(Duration limit) {
        this.timeout = limit;
        return this;
    }

    /** Sets how long a job waits that has failed. */
    public HandlerOptions retryIn(Backoff after) {
        this.backoff = after;
        return this;
    }

    /** The backoff, or null. One that throws is logged, and gives nothing: then the usual backoff is used. */
    Backoff backoff(JobLog log) {
        Backoff own = backoff;
        if (own == null) {
            return null;
        }
        return (count, error, job) -> {
            try {
                return own.after(count, error, job);
            } catch (Throwable e) {
                log.backoffFailed(job, e);
                return null;
            }
        };
    }

    /** In seconds, or null. */
    Double timeout() {
        return timeout == null ? null : Double.valueOf(timeout.toMillis() / 1000.0);
    }
}
