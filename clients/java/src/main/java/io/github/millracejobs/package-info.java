/**
 * Background jobs through RabbitMQ or LavinMQ, with a Millrace sidecar beside the broker.
 *
 * <p>A {@link io.github.millracejobs.Client} enqueues jobs. A {@link io.github.millracejobs.Worker}
 * runs handlers by the class of a job. {@link io.github.millracejobs.testing} has replacements of a
 * client for tests. The rules for this library and those of other languages are in the project's
 * {@code docs/clients.md}.
 *
 * <p>On each connection, one thread publishes, and threads of the AMQP library read and send
 * heartbeats. Handlers run in the threads of their lanes. Callbacks of the AMQP library never wait.
 * When a connection is lost, everything on it is dropped. The library's automatic recovery is not
 * used, because a delivery must not be answered on another connection than its own.
 */
package io.github.millracejobs;
