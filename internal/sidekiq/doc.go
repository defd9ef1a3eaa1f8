// Package sidekiq moves jobs between Sidekiq's Redis and the broker while both are in use, so that
// an application can change from one to the other queue by queue.
//
// Each queue is worked on one side. Jobs of a queue that Millrace's workers run come in: from
// Sidekiq's list to the queue of the same name. Jobs of a queue that Sidekiq's workers still run go
// out: from the queue on the broker to Sidekiq's list. Jobs in Sidekiq's schedule, its retries and
// its dead set come in for both, so Millrace schedules and retries them all. What fails in a worker
// of Sidekiq comes in as a retry, waits in Millrace, and goes out again.
//
// # Promises
//
//   - No job is lost. A job leaves its place in Redis and enters a private list in one step. It is
//     removed from there after the broker has confirmed it. A job that goes out is acknowledged after
//     Redis has it.
//   - A job is doubled only if the bridge, Redis or the broker fails between these two.
//   - The bytes of a job stay as they are, but for the members that the two systems define
//     differently.
//   - What Millrace cannot do, such as a batch, stays in Redis, and is counted in the log.
package sidekiq
