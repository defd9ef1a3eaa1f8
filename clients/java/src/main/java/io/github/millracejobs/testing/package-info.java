/**
 * Producers without a broker, for tests.
 *
 * <p>{@link io.github.millracejobs.testing.Inline} runs a job as soon as it is enqueued. {@link
 * io.github.millracejobs.testing.Fake} collects jobs until they are drained. {@link
 * io.github.millracejobs.Attempt} runs one attempt at a job: any attempt, also cancelled, or while
 * the worker stops. All check jobs as a client does, and pass args through JSON.
 */
package io.github.millracejobs.testing;
