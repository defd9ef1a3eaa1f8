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
// (bytes that are not AMQP 1.0; in 3.10 also a compressed sub-batch of a native publisher). A reader that dies so twice at one offset
// steps over it, one further at each death, and delivers one Fault for the gap when something comes from behind it; in 3.10 whatever
// shares a chunk with the unreadable record is in the gap too. RabbitMQ 4 leaves compressed sub-batches out without a word: a hole.
//
// The broker vouches for a record's UserID only if it came over AMQP: a native publisher writes whatever properties it likes. It
// needs write permission on the stream itself to do so; AMQP clients, who publish through the default exchange, do not.
//
// A node of a cluster serves a stream of which it has a replica, over either protocol. The native transport finds such a node: a
// given host as it stands, or else by the name that the node advertises. Over AMQP 0-9-1 a reader that is refused tries the next host.
//
// Over AMQP 0-9-1, Last waits: two seconds for an empty stream, a quarter of a second behind the last record; so does Fetch, two
// seconds for an offset behind the end, and First for an empty stream. Natively all know.
//
// # Why not the stream client's consumer
//
// The native transport speaks the protocol itself. The consumer of rabbitmq-stream-go-client v1.8.3 can be stopped by any publisher:
// a sub-batch that does not decompress makes it panic, and one that unpacks to deeply nested values overflows the stack, both in a
// goroutine of its own, so that the process dies; a sub-batch that is shorter than it says makes it drop the chunk and wait for ever;
// what it cannot decode it passes on as an empty message. It does not give the time at which a chunk was stored, and connects again
// by itself in a loop that no context ends. The tests use it, to compare speed and encoding with.
package streams
