// Package scheduler delivers jobs when they are due and carries out commands such as retry, delete
// and reschedule.
//
// # Leadership
//
// Every sidecar runs a Scheduler, and one of them leads. The leader holds the lock, the queue
// jobs.leader. Lock, command inbox and deliveries share one connection. If the broker drops that
// connection, it also releases the lock: a leader that has lost its lock cannot deliver. A leader
// whose lock may pass on while its connection lives acts on a lease, which pings through the lock
// renew.
//
// One period of leadership is an epoch:
//
//	opening ──▶ catching up ──▶ looking ──▶ settling ──▶ leading
//	   ▲                                                    │
//	   └────────────── connection or lock lost ◀────────────┘
//
// In each phase:
//
//   - opening appends a record to the journal. Its offset is the number of the epoch.
//   - catching up appends a barrier to each entry stream, and waits until the view has read it.
//     From then on the view knows everything that earlier leaders did.
//   - looking sends a probe through the exchanges. If it does not arrive, the routing is repaired.
//     Then the witness shows whether the broker has restarted.
//   - settling reconciles: it decides whether the fires arrived that earlier leaders left
//     unconfirmed. Those that cannot be proven to have arrived are fired again.
//   - leading fires what is due and carries out commands.
//
// Start, crash, failover and a short network failure all take this path.
//
// # Structure
//
// The core is a state machine without I/O. It publishes through a ledger (package ledger), and its
// duties are types with the few fields that only they use: a dispatcher fires, a reconciler decides
// about doubts, routing checks that fires arrive, operations act on many entries, a carrier keeps
// entries ahead of retention. A leadership connects a core to the broker. Beside its loop run a
// binder, which declares queues, a prober, and what makes dead jobs of dead letters.
//
// # Retention
//
// At half the shortest retention in force the leader appends pending entries again (carry-over),
// reads them back, and journals that everything below is settled (low water). So a job that is
// scheduled years ahead outlives any retention.
//
// # Guarantees
//
// A job whose publish to scheduled_jobs or retries was confirmed is fired at least once. It is
// fired exactly once unless the broker stopped while the fire was unconfirmed. A fire is one
// publish to the queue and the journal. Until its confirm is journaled its entry is in doubt, and
// kept with its body.
//
// # Failures
//
// An error that is about one queue holds that queue. An error that is about one message parks its
// entry. Neither ends the epoch. Any other error of the connection does, and so does a leader that
// makes no progress.
package scheduler
