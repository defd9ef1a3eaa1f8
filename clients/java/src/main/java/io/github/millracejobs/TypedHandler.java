package io.github.millracejobs;

/**
 * Runs the jobs of a class whose argument is one value of a type. Several threads call it
 * concurrently.
 *
 * @param <A> the type, usually a record
 */
@FunctionalInterface
public interface TypedHandler<A> {
    /**
     * Runs a job. The job ends well when this returns.
     *
     * @throws Exception the job failed, and is retried later; {@link Discard}, {@link Kill}, {@link
     *     RetryIn} and {@link HandBack} have other outcomes
     */
    void run(A argument, Job job) throws Exception;
}
