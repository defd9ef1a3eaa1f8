/**
 * Producers without a broker, for tests.
 *
 * <p>{@link io.github.millracejobs.testing.Inline} runs a job as soon as it is enqueued, {@link io.github.millracejobs.testing.Fake} collects
 * jobs until they are drained. {@link io.github.millracejobs.Attempt} runs one job as any attempt at it, cancelled or while the worker stops. All
 * check jobs as a client does, and hand handlers args that went through JSON.
 */
package io.github.millracejobs.testing;
