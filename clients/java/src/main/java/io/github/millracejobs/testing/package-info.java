/**
 * Producers without a broker, for tests.
 *
 * <p>{@link io.github.millracejobs.testing.Inline} runs a job as soon as it is enqueued, {@link io.github.millracejobs.testing.Fake} collects
 * jobs until they are drained. Both check jobs as a client does, and hand handlers args that went through JSON.
 */
package io.github.millracejobs.testing;
