package io.github.millracejobs;

/**
 * Thrown by a handler to end its job without further attempts. The job becomes a dead job that
 * shows the reason, and the class of the cause if there is one.
 */
public class Kill extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Gives up for a reason. */
    public Kill(String reason) {
        super(reason);
    }

    /** Gives up because of an error. */
    public Kill(String reason, Throwable cause) {
        super(reason, cause);
    }
}
