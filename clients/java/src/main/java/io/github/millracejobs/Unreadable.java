package io.github.millracejobs;

/** A delivery is not a job, or is a job that the sidecar could not read either. */
final class Unreadable extends Exception {
    private static final long serialVersionUID = 1;

    Unreadable(String message) {
        super(message);
    }

    Unreadable(String message, Throwable cause) {
        super(message, cause);
    }
}
