// Command bench measures Millrace together with the broker that it runs on, and prints one table.
//
// It starts a private RabbitMQ node and the real binary, `millrace serve`, and uses plain
// amqp091-go clients. The table shows each figure next to the one of the same broker without
// Millrace, from the same run, with the same bytes, headers and properties. On another machine both
// differ, but their ratio differs less. README.md explains each figure and how to read it.
//
// # Failures
//
// A measurement that is not possible is an error. A missed target is not: the table shows by how
// much it was missed.
package main
