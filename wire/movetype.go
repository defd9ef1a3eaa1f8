package wire

import "time"

// Types of job queues.
const (
	QueueClassic = "classic"
	QueueQuorum  = "quorum"
)

// How long a move to another type waits for unacknowledged jobs.
const (
	MoveWithin      = time.Minute // the default
	MoveWithinLeast = 20 * time.Second
	MoveWithinMost  = 24 * time.Hour
)

// PauseMove says that a queue is paused because it is being moved to another type. A leader that
// finds one when it begins undoes the move.
type PauseMove struct {
	To     string `json:"to"`
	Paused bool   `json:"paused,omitempty"` // it was paused before the move, and stays paused
}

// States of a move.
const (
	MovePlanned = "planned"
	MoveRuns    = "running"
	MoveDone    = "done"
)

// TypeMove describes a move to another type, or what one would do.
type TypeMove struct {
	ID        string         `json:"id,omitempty"` // a command with this id returns the progress
	Queue     string         `json:"queue"`
	From      string         `json:"from"`
	To        string         `json:"to"`
	Node      string         `json:"node,omitempty"` // of the queue or its leader
	Ready     int64          `json:"ready"`          // jobs when it began
	Unacked   int64          `json:"unacked"`        // jobs when it began
	Consumers int64          `json:"consumers"`      // when it began
	Arguments map[string]any `json:"arguments"`      // of the new queue
	Dropped   map[string]any `json:"dropped"`        // arguments that only the old queue has
	State     string         `json:"state"`
	Step      string         `json:"step,omitempty"` // the current step
	Moved     int64          `json:"moved"`          // jobs that went through jobs.gated
}
