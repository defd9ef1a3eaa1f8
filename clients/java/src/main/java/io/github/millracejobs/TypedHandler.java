package io.github.millracejobs;

/**
 * Runs the jobs of a class whose argument is one value of a type. Several threads call it concurrently.
 *
 * @param <A> the type, usually a record
 */
@FunctionalInterface
public interface TypedHandler<A> {
    /**
     * Runs a job. It ends well by returning.
     *
     * @throws Exception it failed, and is tried again later; {@link Discard}, {@link Kill}, {@link RetryIn} and {@link HandBack} say more
     */
    void run(A argument, Job job) throws Exception;
}
