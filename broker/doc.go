// Package broker is Millrace's AMQP 0-9-1 client. It has connections, confirmed publishing,
// consuming, the topology, the leader's lock, and the broker's management API. No other package
// imports amqp091-go.
//
// # Connections
//
// Dial opens one connection. A Conn never reconnects:
//
//	Dial ─▶ open ◀─▶ blocked (alarm)
//	         │          │
//	         ▼          ▼
//	     lost (ErrLost) or closed (ErrClosed)
//
// The end of a Conn ends everything that was built on it. Each Publisher closes Done, each Consumer
// closes Deliveries and Done, and Err returns the reason. The caller starts again with Dial. So
// crash, restart, failover and a short network failure take one code path.
//
// A Conn opens publishers, consumers and the leader's lock. Requests that need only one answer are
// grouped by what they are about: Queues, Topology (streams, exchanges, bindings and rights),
// Probes and Witnesses.
//
// # Promises
//
//   - No call waits forever. A call that waits for the broker returns when its context ends. Close
//     has its own deadline. A connection is closed when its peer has sent nothing for one and a
//     half heartbeats, even while a write is blocked.
//   - Publish never waits for a confirm. Confirms reports each tag once, in the order of the
//     broker's answers and not of the tags. So one slow queue delays no other confirm.
//   - A queue or exchange that exists is used as it is. To declare it otherwise changes nothing on
//     the broker, and is reported as a Finding. Only what belongs to Millrace alone must be as
//     declared.
//   - No log and no error contains a password.
//
// # Failures
//
//   - The connection is lost: calls return ErrLost. Tags that a Publisher has not reported when it
//     is done are in doubt.
//   - The broker refuses a request, because a queue is exclusive, a limit is reached or an argument
//     is invalid: the call returns an error. The refusal closes only the channel that was opened
//     for that request.
//   - A message would make amqp091-go or the broker end the connection: it is refused with
//     ErrUnpublishable, before a byte is sent.
//   - The broker has an alarm: RabbitMQ stops reading, the connection stays open, and Blocked
//     reports the reason. LavinMQ closes channels, with ErrAlarm.
//
// # Rules for amqp091-go
//
//   - Its notification channels must be read, or the connection stalls. So each has its own
//     goroutine that does nothing else.
//   - A request must not follow an unanswered one on the same channel. So a request whose context
//     ended keeps its channel until it is answered or the connection ends.
//   - ConsumeWithContext can hang a shutdown. It is not used.
//   - A blocked write holds the lock that ending the connection needs. So the socket is closed
//     below the library: see socket.
package broker
