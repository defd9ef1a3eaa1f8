package io.github.millracejobs;

/**
 * Thrown by a handler that gives up because the worker is stopping. The job goes back to its queue
 * unchanged, and this attempt does not count. If the worker is not stopping, this is a failure.
 */
public class HandBack extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Hands the job back. */
    public HandBack() {
        super("handed back by a worker that is not stopping");
    }
}
