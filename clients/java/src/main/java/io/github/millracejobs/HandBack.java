package io.github.millracejobs;

/**
 * Thrown by a handler that gives up because the worker is stopping: the job goes back to its queue as it came, and nobody counts it. From a
 * worker that is not stopping it is a failure.
 */
public class HandBack extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Hands back. */
    public HandBack() {
        super("handed back by a worker that is not stopping");
    }
}
