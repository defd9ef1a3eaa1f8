// Package processes knows the worker processes, from their heartbeats.
//
// The newest heartbeat of each process is kept, and when it was heard. Whether a process is live,
// quiet, stopping or lost depends on how long ago that was, so it is decided when a client
// asks: the fold itself never looks at a clock to decide anything.
//
// When a heartbeat was heard is what the broker's clock said when it stored it, compared with this
// machine's. Brokers that are read over AMQP do not say: there it is when it arrived here, or, for
// those that were read after a start, what the worker's clock said.
//
// Anybody may write heartbeats. Kept are at most 10,000 processes and 64 MiB, those that were heard
// last; one that was not heard for an hour is forgotten.
package processes
