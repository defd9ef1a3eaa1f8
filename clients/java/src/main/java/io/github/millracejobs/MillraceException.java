package io.github.millracejobs;

/** What every error of a client is. */
public class MillraceException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Made by the library. */
    MillraceException(String message, Throwable cause) {
        super(message, cause);
    }
}
