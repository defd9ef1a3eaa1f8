package io.github.millracejobs;

/** There was no connection until the deadline. Nothing was sent. */
public final class UnreachableException extends MillraceException {
    private static final long serialVersionUID = 1;

    UnreachableException(String message, Throwable cause) {
        super(message, cause);
    }
}
