package io.github.millracejobs;

/**
 * The outcome of a delivery.
 *
 * @param stream that gets the record before the broker gets the answer
 * @param record the record to publish, or null
 * @param then the answer to the broker
 * @param status of its metric, or null if it has none
 * @param errorClass of its error, or null
 * @param died the error of a job that was given up, for the death hooks; else null
 * @param end how the attempt ended, for the log and the failure hooks
 */
record Outcome(String stream, byte[] record, Then then, String status, String errorClass, Throwable died, End end) {
    static final String SUCCESS = "success";
    static final String FAILED = "failed";
    static final String DEAD = "dead";
    static final String DISCARDED = "discarded";
    static final String EXPIRED = "expired";

    static final Outcome SUCCEEDED = new Outcome("", null, Then.ACK, SUCCESS, null, null, End.WELL);
    static final Outcome HANDED_BACK = new Outcome("", null, Then.REQUEUE, null, null, null, new End(Next.HANDED_BACK, false, null, null, 0, 0));

    /** Of a job that ran elsewhere, or that another copy stands for. */
    static final Outcome DROPPED = new Outcome("", null, Then.ACK, null, null, null, End.WELL);

    enum Then { ACK, REQUEUE, REJECT }

    /** The step after an attempt. */
    enum Next { DONE, RETRY, DEAD, DISCARDED, HANDED_BACK }

    /**
     * How an attempt ended.
     *
     * @param next the step after it
     * @param failed whether the attempt counts as a failure
     * @param error the error that ended it, or null
     * @param reason why the job is dead or discarded, or null
     * @param delay of a retry, in seconds
     * @param due when a retry is due, in seconds since the epoch
     */
    record End(Next next, boolean failed, Throwable error, String reason, double delay, double due) {
        static final End WELL = new End(Next.DONE, false, null, null, 0, 0);

        static End retry(Throwable error, double delay, double due) {
            return new End(Next.RETRY, true, error, null, delay, due);
        }

        static End dead(Throwable error, String reason, boolean failed) {
            return new End(Next.DEAD, failed, error, reason, 0, 0);
        }

        static End discarded(Throwable error, String reason, boolean failed) {
            return new End(Next.DISCARDED, failed, error, reason, 0, 0);
        }
    }

    /**
     * Returns whether the job has ended: its delivery does not go back to its queue, and was not
     * dropped.
     */
    boolean ends() {
        return then != Then.REQUEUE && status != null;
    }

    static Outcome acknowledged(String status, String errorClass, Throwable died, End end) {
        return new Outcome("", null, Then.ACK, status, errorClass, died, end);
    }

    /**
     * Returns an outcome with a record. If the sidecar could not read the record, the outcome is a
     * rejection: the sidecar makes a dead job of it, shortened.
     */
    static Outcome written(String stream, byte[] record, String status, Throwable died, End end) {
        String errorClass = Failure.errorClass(end.error());
        if (record.length > Wire.MAX_RECORD) {
            End dead = End.dead(end.error(), "its record is over 16 MiB", end.failed());
            return new Outcome("", null, Then.REJECT, DEAD, errorClass, end.error(), dead);
        }
        return new Outcome(stream, record, Then.ACK, status, errorClass, died, end);
    }
}
