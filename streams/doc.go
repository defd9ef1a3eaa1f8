// Package streams reads a stream of the broker from an offset on, over whichever protocol the broker offers.
//
// There are two transports behind one interface. The native one speaks RabbitMQ's stream protocol and can read everything that a
// stream may hold. The other consumes over AMQP 0-9-1, which every broker speaks.
//
// # Promises
//
// Records come in order, each offset at most once in one Read, and none that the broker can deliver is left out. What stands at an
// offset and cannot be read comes as a record with a Fault, and reading goes on behind it: no publisher can stop a reader.
// At most Config.Ahead bytes are read ahead of deliver, however large the records are and however slow deliver is.
//
// # When things fail
//
// A Read never connects again by itself. It returns ErrLost, and its caller, who knows what it has seen, reads again from there.
// Every call honours its context, and leaves no goroutine behind.
//
// # What the transports cannot do
//
// Over AMQP 0-9-1 a record has no Time. RabbitMQ closes the connection of a consumer to which it should deliver what it cannot convert
// (a sub-batch of a native publisher, bytes that are not AMQP 1.0). A reader that dies so twice at one offset steps over it, one
// further at each death, and delivers one Fault for the gap; whatever shares a chunk with the unreadable record is in the gap too.
// RabbitMQ 4 leaves compressed sub-batches out without a word; nothing can be done about that here.
//
// The broker vouches for a record's UserID only if it came over AMQP: a native publisher writes whatever properties it likes. It
// needs write permission on the stream itself to do so; AMQP clients, who publish through the default exchange, do not.
//
// The native transport connects to the given address and no other, whatever host name the broker advertises. On a cluster node without
// a copy of the stream it gets ErrLost.
//
// # Why not the stream client's consumer
//
// The native transport speaks the protocol itself, some three hundred lines. The consumer of rabbitmq-stream-go-client v1.8.3 does not
// give the time at which a chunk was stored, drops a chunk whose sub-batch is shorter than it says, logs and passes on what it could
// not decode, connects again by itself in a loop that no context ends, and panics in a goroutine of its own (so that the whole process
// dies) on a sub-batch that does not decompress. Any client could thus stop every sidecar with one message.
package streams
