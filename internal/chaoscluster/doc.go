// Command chaoscluster injects faults into clusters of three broker nodes while jobs fall due, and
// counts the jobs that arrive.
//
// # What it knows
//
// It runs real sidecars on real nodes (internal/localbroker). It knows about Millrace only what
// docs/wire-format.md says. It publishes and consumes with a plain AMQP client. It counts by jid
// and by fire, which the headers millrace-epoch and millrace-seq identify. A tap between each
// sidecar and each node decodes the AMQP frames that pass. So the program knows the truth about
// each fire: when it was sent, and whether the broker's answer was passed on to the leader.
//
// # Bounds
//
// A row is one fault, with the bounds that Millrace promises for it: how many jobs may be doubled,
// and how long nothing may be delivered. No job may be lost in any row. A job is doubled if two
// different fires of it arrived. The first of the two fires was
//
//   - journaled, if the journal called it confirmed before the second was written,
//   - stale, if its leader had the broker's answer and the time to journal it: a fire that the
//     leader sent more than two seconds later was answered too,
//   - answered, if its leader had the answer, but not that time,
//   - nacked, if the broker had refused it, although the job arrived,
//   - unkept, if the broker had confirmed it, although the journal lacks it,
//   - open, if it had no answer.
//
// Journaled and stale are never allowed. Unkept is allowed only on RabbitMQ 3.10: while a stream
// changes its leader, that version may confirm records that the stream has lost.
package main
