package io.github.millracejobs;

/** Thrown by a handler that gives its job up at once: it becomes a dead job, which shows the reason, and the class of the cause if there is one. */
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
