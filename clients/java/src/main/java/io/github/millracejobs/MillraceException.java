package io.github.millracejobs;

/** The base class of a client's errors. */
public class MillraceException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Made by the library. */
    MillraceException(String message, Throwable cause) {
        super(message, cause);
    }
}
