package io.github.millracejobs;

import java.math.BigDecimal;

/**
 * A failure that the worker itself reports, in place of an error of the handler. Hooks get it.
 * {@link #kind} returns the kind of failure.
 */
public final class WorkerException extends RuntimeException implements Described {
    private static final long serialVersionUID = 1;

    private final Kind kind;

    /** Why the job failed. */
    public enum Kind {
        /** The handler failed after the timeout was over. The cause is the error that it threw. */
        TIMEOUT("Timeout"),
        /** The worker has no handler for the job's class. */
        UNKNOWN_CLASS("UnknownClass"),
        /** The job expired before it began. */
        EXPIRED("expired"),
        /** Several worker processes died while they ran the job. */
        POISON("poison");

        private final String errorClass;

        Kind(String errorClass) {
            this.errorClass = errorClass;
        }
    }

    private WorkerException(Kind kind, String message, Throwable cause) {
        super(message, cause, true, false); // without a stack, which would only show the library
        this.kind = kind;
    }

    static WorkerException timeout(double seconds, Throwable cause) {
        String limit = BigDecimal.valueOf(seconds).stripTrailingZeros().toPlainString();
        return new WorkerException(Kind.TIMEOUT, "ran longer than " + limit + " s", cause);
    }

    static WorkerException unknownClass(String name) {
        return new WorkerException(Kind.UNKNOWN_CLASS, "no handler for class " + name, null);
    }

    static WorkerException expired() {
        return new WorkerException(Kind.EXPIRED, "expired before it began", null);
    }

    static WorkerException poison(int deaths) {
        return new WorkerException(Kind.POISON, "its worker died " + deaths + " times while it ran", null);
    }

    /** {@return why the job failed} */
    public Kind kind() {
        return kind;
    }

    /** {@return the name that the job's record shows as the error's class} */
    @Override
    public String errorClass() {
        return kind.errorClass;
    }
}
