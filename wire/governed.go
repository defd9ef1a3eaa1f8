package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// KindQueue is the kind of the definitions of governed queues.
const KindQueue = "queue"

// GovernedQueue is the definition of a governed queue: its jobs wait in jobs.gated until the leader
// delivers them, also those that clients publish for the queue.
type GovernedQueue struct {
	Key        string           `json:"key,omitempty"`         // path into a job to what limits per key count it under
	MaxWaiting int64            `json:"max_waiting,omitempty"` // more jobs are refused; 0: any number waits
	Weights    map[string]int64 `json:"weights,omitempty"`     // by key: turns in a round; 1 for other keys
	Ahead      int64            `json:"ahead,omitempty"`       // jobs that are delivered and have not ended; 0: as workers say
	Paused     bool             `json:"paused,omitempty"`
}

// Limits of governed queues.
const (
	MaxGoverned   = 1000
	maxMaxWaiting = 1_000_000_000
	maxWeight     = 1000
	maxKeyPath    = 200 // bytes
)

// ParseGoverned parses a definition, or a layer of one, and checks what is there.
func ParseGoverned(raw []byte) (q GovernedQueue, err error) {
	if err := decodeLayer(raw, &q); err != nil {
		return q, err
	}
	return q, q.check()
}

// Full reports whether more jobs are refused if so many wait: as many as may, and then until a
// tenth of these is gone. was reports whether they are refused already.
func (q *GovernedQueue) Full(waiting int64, was bool) bool {
	most := q.MaxWaiting
	if was {
		most -= most / 10
	}
	return most > 0 && waiting >= most
}

func (q *GovernedQueue) check() error {
	switch {
	case q.MaxWaiting < 0 || q.MaxWaiting > maxMaxWaiting:
		return fmt.Errorf("max_waiting is a number from 1 to %d", maxMaxWaiting)
	case q.Ahead < 0 || q.Ahead > MaxConcurrency:
		return fmt.Errorf("ahead is a number from 1 to %d", MaxConcurrency)
	case len(q.Weights) > MaxOverrides:
		return fmt.Errorf("there are %d weights, at most %d are allowed", len(q.Weights), MaxOverrides)
	}
	for key, weight := range q.Weights {
		if weight < 1 || weight > maxWeight {
			return fmt.Errorf("the weight of key %q is a number from 1 to %d", Shorten(key, 40), maxWeight)
		}
	}
	return checkKeyPath(q.Key)
}

func checkKeyPath(path string) error {
	if len(path) > maxKeyPath {
		return fmt.Errorf("key has %d bytes, at most %d are allowed", len(path), maxKeyPath)
	}
	for step := range strings.SplitSeq(path, ".") {
		if path != "" && step == "" {
			return errors.New("key is a path into the job, such as args.0.customer")
		}
	}
	return nil
}

// CheckGovernedName returns an error if no queue can have this name.
func CheckGovernedName(name string) error { return CheckQueueName(name) }

// States of a governed queue.
const (
	QueueSwitching = "switching" // its bindings are being changed
	QueueDraining  = "draining"  // jobs from before are still in it, and nothing is delivered
	QueueGoverned  = "governed"
	QueueFull      = "full"      // max_waiting jobs wait: more are refused
	QueueSuspended = "suspended" // max_waiting jobs wait, and more are not refused because jobs.full is away
	QueueBypassed  = "bypassed"  // something had bound it beside, so that jobs came to it directly
	QueueLeaving   = "leaving"   // it is governed no longer, and its bindings are being changed
)

// DefinedQueue is what is known of a governed queue: the layers of its definition, and its state. A
// queue that is leaving has no layers.
type DefinedQueue struct {
	Name   string                  `json:"name"`
	Layers map[string]DefinedLayer `json:"layers,omitempty"`
	State  string                  `json:"state"`
	Since  float64                 `json:"since"`
	Turn   int64                   `json:"turn"` // where the journal began or ended that it is governed
}

// Governs reports whether the queue is governed.
func (q *DefinedQueue) Governs() bool { return len(q.Layers) > 0 }

// Merged returns the definition that the layers make. A stronger layer wins, member by member.
func (q *DefinedQueue) Merged() (json.RawMessage, error) { return mergeLayers(q.Layers) }

// Definition returns the merged definition.
func (q *DefinedQueue) Definition() (GovernedQueue, error) {
	merged, err := q.Merged()
	if err != nil {
		return GovernedQueue{}, err
	}
	return ParseGoverned(merged)
}

// Restated says that a governed queue has another state. It counts only for the same turn.
type Restated struct {
	Queue string `json:"queue"`
	Turn  int64  `json:"turn"`
	State string `json:"state,omitempty"` // empty: the queue has left
}

// QueuePiece has some of the governed queues: a carry-over writes them again.
type QueuePiece struct {
	Queues []DefinedQueue `json:"queues"`
	More   bool           `json:"more,omitempty"` // it adds to the piece before it; else it replaces what was known
}
