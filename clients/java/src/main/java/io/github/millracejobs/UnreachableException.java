package io.github.millracejobs;

/** There was no connection before the deadline. The broker does not have the job. */
public final class UnreachableException extends MillraceException {
    private static final long serialVersionUID = 1;

    UnreachableException(String message, Throwable cause) {
        super(message, cause);
    }
}
