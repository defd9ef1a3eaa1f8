package io.github.millracejobs;

/**
 * A unique job is published, and no leader has said whether it is a duplicate. A leader decides about
 * it later. Do not enqueue it again.
 */
public final class UndecidedException extends MillraceException {
    private static final long serialVersionUID = 1;

    private final String jid;

    UndecidedException(String jid, String message) {
        super(message, null);
        this.jid = jid;
    }

    /** {@return the jid of the job} */
    public String jid() {
        return jid;
    }
}
