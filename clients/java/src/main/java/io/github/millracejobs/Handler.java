package io.github.millracejobs;

/** Runs the jobs of a class. Several threads call it at once. */
@FunctionalInterface
public interface Handler {
    /**
     * Runs a job. It ends well by returning.
     *
     * @throws Exception it failed, and is tried again later; {@link Discard}, {@link Kill}, {@link RetryIn} and {@link HandBack} say more
     */
    void run(Job job) throws Exception;
}
