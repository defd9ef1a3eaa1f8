package io.github.millracejobs;

/**
 * An argument of a job, or a field, is missing or does not have the type that the handler asks for.
 * It is the job's failure.
 */
public final class ArgumentException extends RuntimeException {
    private static final long serialVersionUID = 1;

    ArgumentException(String message, Throwable cause) {
        super(message, cause);
    }
}
