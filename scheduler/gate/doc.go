// Package gate decides which gated jobs may fire, by the limits that count them.
//
// A gated job belongs to a group: the jobs of one queue, class and key. All jobs of a group wait
// for the same slots, so only the first of them matters. A group is in one of these states:
//
//	           due             chosen
//	sleeping ───────▶ ready ───────────▶ fired; ready again, or it has no jobs
//	                   ▲  │
//	   slot freed,     │  │ a limit has no room
//	   rate is free    │  ▼
//	                  blocked
//
// The keys of a queue take turns, each as many in a round as its weight says. A blocked group keeps
// its turn, and waits at the counter that had no room. A counter is one limit for one part of the
// jobs, such as one key. When it
// has room, the first group that waits there becomes ready. If that group does not use the room,
// the next one follows.
//
// Slots are a set of entries, so that to take or free one twice counts once.
//
// A Gate does no I/O and has no clock. It is not safe for concurrent use.
package gate
