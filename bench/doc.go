// Command bench measures Millrace beside the broker that it runs on, and prints one table.
//
// It starts a private RabbitMQ node and the real binary, `millrace serve`, and talks to the broker with plain amqp091-go clients. Each
// figure stands beside what the same broker does in the same run without Millrace, with the same bytes, headers and properties: on
// another machine both differ, their ratio less. README.md says what each figure is and how to read it.
//
// A measurement that cannot be made is an error. A target that is missed is not: the table says by how much.
package main
