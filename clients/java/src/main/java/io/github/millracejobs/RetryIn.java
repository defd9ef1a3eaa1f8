package io.github.millracejobs;

import java.time.Duration;
import java.util.Objects;

/**
 * Thrown by a handler to fail with a given time until the next attempt. The record shows the class
 * of the cause if there is one.
 */
public class RetryIn extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Duration delay;

    /** Fails for a reason. */
    public RetryIn(Duration delay, String reason) {
        super(reason);
        this.delay = Objects.requireNonNull(delay, "delay");
    }

    /** Fails because of an error. */
    public RetryIn(Duration delay, Throwable cause) {
        super(cause.getMessage(), cause);
        this.delay = Objects.requireNonNull(delay, "delay");
    }

    /** {@return the time until the job is due again} */
    public Duration delay() {
        return delay;
    }
}
