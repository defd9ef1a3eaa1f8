package scheduler

import "time"

// Status is what a sidecar knows of its own part in leadership.
type Status struct {
	Leader          bool
	Phase           string    // connecting, waiting, or a phase of the epoch
	Epoch           int64     // of this sidecar's leadership; -1 if it does not lead
	Since           time.Time // when the phase began
	Unconfirmed     int
	Overdue         int            // entries that are due and wait for room in the window, at most 1,024
	Blocked         string         // the broker takes no publishes; its reason
	Gap             string         // the journal may have lost records; due entries are held
	Orphaned        bool           // the lock is refused, and its holder does not lead
	OrphanCause     string         // why, in words
	OrphanCure      string         // what to do about it
	Held            []HeldQueue    // queues that take no jobs now
	Lacks           string         // why nothing can be fired: what is not on the broker, or cannot be reached
	Degraded        []Degraded     // what fails, and is not needed to fire
	MissingReplicas map[string]int // on a cluster, by stream or quorum queue: how many replicas it lacks that are online
	InDoubt         int            // fires of earlier leaders that may have arrived, and are not settled yet
	Silent          int            // queues that do not answer what is fired to them
	LeaseAge        time.Duration  // how old the newest ping is that came back to a leader; 0: it needs none
	Accepts         bool           // jobs.direct was there: clients can publish jobs
	LastError       string
	LastLate        time.Duration // how late the newest fire was
	Counters        Counters
}

// HeldQueue is a queue that takes no jobs now. All other queues do.
type HeldQueue struct {
	Queue  string
	Reason string
	Since  time.Time
	Until  time.Time // when it is tried again
}
