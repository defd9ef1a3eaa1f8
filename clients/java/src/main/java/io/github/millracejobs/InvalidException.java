package io.github.millracejobs;

/** The job breaks a rule. Nothing was sent. */
public final class InvalidException extends MillraceException {
    private static final long serialVersionUID = 1;

    InvalidException(String message, Throwable cause) {
        super(message, cause);
    }
}
