package io.github.millracejobs;

/** The client was closed. The broker does not have the job. */
public final class ClosedException extends MillraceException {
    private static final long serialVersionUID = 1;

    ClosedException(String message, Throwable cause) {
        super(message, cause);
    }
}
