/**
 * Background jobs through RabbitMQ or LavinMQ with a Millrace sidecar beside it.
 *
 * <p>A producer is a {@link io.github.millracejobs.Client}, a {@link io.github.millracejobs.Worker} runs handlers by the class of a job;
 * {@link io.github.millracejobs.testing} has both without a broker. {@code docs/clients.md} of the project has the rules that this library and
 * those of other languages follow.
 *
 * <p>Inside, one thread publishes on a connection, the AMQP library's own reads and sends heartbeats, and handlers run in the threads of their
 * lanes. Nothing that is called back by the AMQP library waits. All that was built on a connection is dropped with it; the library's automatic
 * recovery is not used, for a delivery must not be answered on another connection than its own.
 */
package io.github.millracejobs;
