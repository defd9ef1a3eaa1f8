// Package demo shows Millrace from outside: a producer and a worker that know only the names and
// formats in docs/wire-format.md, and that speak plain AMQP 0-9-1. Every line here could be written
// in any language with an AMQP client.
//
// The worker consumes queue.demo.critical, queue.demo.default, queue.demo.low and
// queue.demo.exports, and acknowledges each job that it has done. It publishes a failed job to
// the stream retries, and a job without attempts left to dead_jobs. It sends a heartbeat every
// ten seconds, a last one when it stops, and a record of each job to job_metrics. It runs the
// classes that the producer enqueues, and fails at any other. The producer enqueues jobs,
// schedules some, makes some that fail, and delays messages for the exchange demo.events. Now
// and then a shop uploads its orders: jobs of which a limit lets one run at a time. Exports are
// plain jobs of a governed queue, in which shops take turns. Of two classes, jobs are unique: of
// Reindex the newest one of a shop runs, of WarmCache the first one.
//
// # Promises
//
// A job is acknowledged only after the broker has confirmed its outcome, so no job is lost. A
// worker that dies between the two runs a job twice. The worker says when a limited job has ended.
// It does not ask whether a job that came again may run, as a worker should. A connection that is
// lost is opened again until Run ends.
package demo
