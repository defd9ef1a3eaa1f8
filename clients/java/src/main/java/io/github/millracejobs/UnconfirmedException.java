package io.github.millracejobs;

/** It was sent, and the deadline passed without an answer. It may have arrived. */
public final class UnconfirmedException extends MillraceException {
    private static final long serialVersionUID = 1;

    UnconfirmedException(String message, Throwable cause) {
        super(message, cause);
    }
}
