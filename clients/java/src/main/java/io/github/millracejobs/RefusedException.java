package io.github.millracejobs;

/** The broker said no: the queue is full or down, or there is none and no sidecar to make it. */
public final class RefusedException extends MillraceException {
    private static final long serialVersionUID = 1;

    RefusedException(String message, Throwable cause) {
        super(message, cause);
    }
}
