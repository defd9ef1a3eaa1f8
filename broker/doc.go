// Package broker is Millrace's AMQP 0-9-1 side: connections, confirmed publishing, consuming, the topology, the leader's lock, and
// the broker's management API. It is the only package that knows amqp091-go.
//
// # A connection ends once
//
// Dial makes one connection and never makes it again. A Conn that is lost ends everything that was built on it: each Publisher and
// Consumer closes its Done or Deliveries and says why in Err. Whoever built them starts again from Dial, so crash, restart, failover
// and network blip are one code path. An error that the broker answers to one request (a queue that is exclusive, a limit, a bad
// argument) closes only a channel that was opened for that request, and comes back as an error.
//
// # Promises
//
//   - Nothing waits for ever. Calls that wait for the broker end with their context; Close has a deadline of its own; a peer that
//     sends nothing for one and a half heartbeats is cut off, even while a write to it is stuck.
//   - Publish never waits for a confirm. Every tag that Publish gave is reported once by Confirms, as the broker answers, not in the order
//     of the tags: one slow queue hides nobody else's confirm. Tags still unknown when the publisher is done are in doubt.
//   - A message that amqp091-go or the broker would answer by ending the connection is refused with ErrUnpublishable before a byte
//     of it is sent.
//   - What exists on the broker is used as it is. Everything is declared passively first, and never redeclared with other arguments.
//   - No password reaches a log or an error.
//
// # What amqp091-go needs
//
// Its notification channels must be read or the connection stalls, so each has a goroutine here that does nothing else. A request
// that got no answer must not be followed by another one on its channel, so a request whose context ended keeps its channel to itself
// until the answer or the end of the connection comes. Its ConsumeWithContext can hang a shutdown and is not used. When a write is stuck it holds
// the lock that ending the connection needs, so the socket is closed below it (socket.go).
package broker
