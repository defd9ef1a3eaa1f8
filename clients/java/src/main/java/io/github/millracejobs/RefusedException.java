package io.github.millracejobs;

/**
 * The broker does not take the job. Its queue is full or down, or does not exist and no sidecar can
 * make it.
 */
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

    /**
     * Returns whether the broker returned the message because no queue takes it. The broker has not
     * stored it.
     */
    boolean isReturned() {
        return returned;
    }
}
