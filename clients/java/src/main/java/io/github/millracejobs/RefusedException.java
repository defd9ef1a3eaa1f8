package io.github.millracejobs;

/** The broker said no: the queue is full or down, or there is none and no sidecar to make it. */
public final class RefusedException extends MillraceException {
    private static final long serialVersionUID = 1;

    private final boolean returned;

    RefusedException(String message, Throwable cause) {
        this(message, cause, false);
    }

    RefusedException(String message, Throwable cause, boolean returned) {
        super(message, cause);
        this.returned = returned;
    }

    /** Whether the broker has returned the message, for no queue takes it. It has not stored it. */
    boolean isReturned() {
        return returned;
    }
}
