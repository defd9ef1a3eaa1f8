package io.github.millracejobs;

/** Thrown by a handler to drop its job: no retry, and no dead job. */
public class Discard extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Discards the job for a reason, which only code that catches this sees. */
    public Discard(String reason) {
        super(reason);
    }
}
