// Package scheduler is what is done, by the leader: jobs are fired when they are due, and commands are carried out.
//
// Every sidecar runs a Scheduler. The one that holds the exclusive queue jobs.leader leads; the lock, the inbox and the firing share
// one connection, so the broker itself fences a leader that is gone. An epoch goes through these phases:
//
//	opening      the record opened is appended to the journal; its offset is the epoch's number
//	catching up  a barrier is appended to every entry stream, and the view folds up to it: all that was done and asked is known
//	settling     fires and burials of earlier epochs that may not have arrived are settled, each with a record
//	leading      what is due is fired; commands are carried out
//
// A lost connection ends the epoch, and the next begins the same way as the first after a start: crash, restart, failover and network
// blip are one code path. An error of one queue or one message holds that queue or parks that entry, and ends nothing.
//
// The state machine (core) does no I/O: it looks at the view, publishes through a port and is told of confirms, commands and time. The
// Scheduler connects it to a broker. Beside it, on the same connection, run three helpers of the leader: one makes and binds queues before
// the first job is fired to them, one buries dead-lettered jobs, and one asserts the topology again and again.
//
// A stream forgets. At half the shortest retention in force the leader appends again whatever is pending (carry-over), reads it back, and
// journals that below it everything is settled (low-water). So a job scheduled years ahead outlives any retention, and what was done
// long ago need not be known for ever.
//
// Promise: a confirmed publish to scheduled_jobs or retries reaches its queue at least once; exactly once unless the broker itself
// died with that fire unconfirmed. A fire is one publish to queue and journal; until its confirm has been journaled its entry is
// doubtful and kept, with its body.
package scheduler
