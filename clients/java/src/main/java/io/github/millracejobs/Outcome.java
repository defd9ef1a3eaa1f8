package io.github.millracejobs;

/**
 * What becomes of a delivery.
 *
 * @param stream that gets the record first
 * @param record what is written, or null
 * @param then how the delivery is answered
 * @param status of its metric, or null if it has none
 * @param errorClass of its error, or null
 * @param died it was given up, for this: the death hooks are told; else null
 */
record Outcome(String stream, byte[] record, Then then, String status, String errorClass, Throwable died) {
    static final String SUCCESS = "success";
    static final String FAILED = "failed";
    static final String DEAD = "dead";
    static final String DISCARDED = "discarded";
    static final String EXPIRED = "expired";

    static final Outcome SUCCEEDED = answer(Then.ACK, SUCCESS, null, null);
    static final Outcome HANDED_BACK = answer(Then.REQUEUE, null, null, null);
    static final Outcome REJECTED = answer(Then.REJECT, null, null, null);

    enum Then { ACK, REQUEUE, REJECT }

    static Outcome answer(Then then, String status, String errorClass, Throwable died) {
        return new Outcome("", null, then, status, errorClass, died);
    }

    /** A record that the sidecar could not read is not written: it buries what is rejected, shortened. */
    static Outcome written(String stream, byte[] record, String status, Throwable error, Throwable died) {
        String errorClass = Failure.errorClass(error);
        if (record.length > Wire.MAX_RECORD) {
            return answer(Then.REJECT, DEAD, errorClass, error);
        }
        return new Outcome(stream, record, Then.ACK, status, errorClass, died);
    }
}
