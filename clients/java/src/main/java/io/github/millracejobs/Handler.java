package io.github.millracejobs;

/** Runs the jobs of a class. Several threads call it concurrently. */
@FunctionalInterface
public interface Handler {
    /**
     * Runs a job. The job ends well when this returns.
     *
     * @throws Exception the job failed, and is retried later; {@link Discard}, {@link Kill}, {@link
     *     RetryIn} and {@link HandBack} have other outcomes
     */
    void run(Job job) throws Exception;
}
