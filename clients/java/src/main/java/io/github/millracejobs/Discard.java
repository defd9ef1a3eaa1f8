package io.github.millracejobs;

/** Thrown by a handler that drops its job: no retry, no dead job. */
public class Discard extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Says why, for whoever catches it on its way. */
    public Discard(String reason) {
        super(reason);
    }
}
