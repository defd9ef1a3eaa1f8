// Package streams reads a stream of the broker from a given offset, over the best protocol that the
// broker offers.
//
// There are two transports. The native one speaks RabbitMQ's stream protocol, and can read
// everything that a stream may hold. The other one consumes over AMQP 0-9-1, which every broker
// speaks. Open prefers the native one:
//
//	       only AMQP 0-9-1 answers for Config.FallBack
//	native ───────────────────────────────────────────▶ amqp
//	native ◀─────────────────────────────────────────── amqp
//	       native answers again, and Config.Trust agrees
//
// # Promises
//
//   - Records come in order, and each offset at most once in one Read. No record that the broker
//     can deliver is left out.
//   - A record that cannot be read comes as a record with a Fault, and reading continues behind it.
//     No publisher can stop a reader.
//   - At most Config.Ahead bytes are read ahead of deliver, however large the records are and
//     however slow deliver is.
//
// # Failures
//
// When a Read loses its connection, it returns ErrLost and does not reconnect. The caller knows
// which records it has, and reads again from there. The one exception is a reader that steps over
// an unreadable record: it reconnects. Every call honours its context, and leaves no goroutine
// behind.
//
// # Limits of the transports
//
// Over AMQP 0-9-1:
//
//   - A record has no Time.
//   - RabbitMQ closes the connection of a consumer when it cannot convert a record for it. Such
//     records are bytes that are not AMQP 1.0, and in 3.10 also compressed sub-batches of native
//     publishers. If that happens twice at one offset, the reader steps over the offset, and over
//     one more each time it happens again. When a later record comes, the reader delivers one Fault
//     for the gap. In 3.10 all records in the same chunk are in the gap too.
//   - RabbitMQ 4 silently leaves compressed sub-batches out. Their offsets are missing.
//   - Last waits two seconds at an empty stream, and a quarter of a second behind the last record.
//     Fetch waits two seconds for an offset behind the end, and First two seconds at an empty
//     stream. The native transport does not wait.
//
// The broker guarantees the UserID of a record only if the record was published over AMQP. A native
// publisher may write any properties. It needs write permission on the stream itself. AMQP clients
// publish through the default exchange, and do not need that permission.
//
// In a cluster, a node can serve a stream only if it has a replica, over either protocol. The
// native transport finds such a node: it uses a given host as it is if that will do, or else the
// name that a node advertises. Over AMQP 0-9-1 a reader that is refused tries the next host.
//
// # Why not the consumer of the stream client
//
// The native transport implements the protocol itself, because any publisher can stop the consumer
// of rabbitmq-stream-go-client v1.8.3:
//
//   - A sub-batch that does not decompress makes it panic. One that unpacks to deeply nested values
//     overflows the stack. Both happen in a goroutine of the client, and so end the process.
//   - A sub-batch that is shorter than it claims makes it drop the chunk and wait forever.
//   - A message that it cannot decode is delivered as an empty message.
//
// It also does not report when a chunk was stored, and it reconnects in a loop that no context
// ends. The tests use it to compare speed and encoding.
package streams
