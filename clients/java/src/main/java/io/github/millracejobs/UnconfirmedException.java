package io.github.millracejobs;

/**
 * The job was sent, and no answer came before the deadline or before the client was closed. The job
 * may have arrived. To enqueue it again under the same jid, so that both copies are recognised as
 * one job, use {@code job.jid(e.jid())}.
 */
public final class UnconfirmedException extends MillraceException {
    private static final long serialVersionUID = 1;

    private final String jid;

    UnconfirmedException(String jid, String message, Throwable cause) {
        super(message, cause);
        this.jid = jid;
    }

    /** {@return the jid of the job that may have arrived} */
    public String jid() {
        return jid;
    }
}
