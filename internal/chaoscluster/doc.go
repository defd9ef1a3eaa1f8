// Command chaoscluster breaks clusters of three broker nodes while jobs fall due, and counts what
// arrives.
//
// It runs real sidecars on real nodes (internal/localbroker), and knows nothing of how Millrace
// works but what docs/wire-format.md says. It publishes and consumes with a plain AMQP client and
// counts by jid and by fire, that is by the headers millrace-epoch and millrace-seq. A tap between
// each sidecar and each node reads the AMQP frames that pass. So the program knows the truth of
// each fire: when it was sent, and whether the broker's answer was passed on to its leader.
//
// A row is one fault, with the bounds that Millrace promises for it: how many jobs may be doubled,
// and for how long nothing may be delivered. No job may be lost in any row. A job is doubled if two
// different fires of it arrived. The first of two fires was
//
//   - journaled, if the journal said that it was confirmed before the second was written,
//   - stale, if its leader had the broker's answer, and could have journaled it: a fire that it sent
//     more than two seconds later was answered too,
//   - answered, if its leader had the answer and no such time,
//   - nacked, if the broker had refused it although the job arrived,
//   - unkept, if the broker had confirmed it although the journal does not have it,
//   - open, if it had no answer.
//
// Journaled and stale are never allowed, unkept only on RabbitMQ 3.10: while a stream changes its
// leader, that version may confirm what the stream has lost.
package main
