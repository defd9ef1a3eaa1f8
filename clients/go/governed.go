package millrace

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// GovernedQueue is a queue of which limits count all jobs, also plain jobs of other programs. What
// is zero has the default of a definition.
type GovernedQueue struct {
	Name       string
	Key        string         // path to the key of a job, such as args.0.customer_id or class; keys take turns
	MaxWaiting int            // while so many jobs wait, more are refused (ErrRefused); any number waits if zero
	Weights    map[string]int // by key, how many turns it has in a round; 1 for other keys
	Ahead      int            // how many jobs are delivered and have not ended at most; as its workers say if zero
	Paused     bool           // no job of the queue is delivered
}

// Bounds of a definition.
const (
	mostWaiting = 1_000_000_000
	mostAhead   = 1_000_000
	mostWeights = 10_000
	mostWeight  = 1000
)

// Definition checks the queue as DefineQueues does, and returns its definition as JSON. It is for
// test helpers.
func (q GovernedQueue) Definition() (json.RawMessage, error) {
	if err := q.check(); err != nil {
		return nil, fmt.Errorf("%w: governed queue %.100q: %w", ErrInvalid, q.Name, err)
	}
	m := map[string]any{"name": q.Name}
	if q.Key != "" {
		m["key"] = q.Key
	}
	if q.MaxWaiting != 0 {
		m["max_waiting"] = q.MaxWaiting
	}
	if len(q.Weights) > 0 {
		m["weights"] = q.Weights
	}
	if q.Ahead != 0 {
		m["ahead"] = q.Ahead
	}
	if q.Paused {
		m["paused"] = true
	}
	return marshal(m)
}

func (q GovernedQueue) check() error {
	switch {
	case q.MaxWaiting < 0 || q.MaxWaiting > mostWaiting:
		return fmt.Errorf("max waiting must be a number from 1 to %d", mostWaiting)
	case q.Ahead < 0 || q.Ahead > mostAhead:
		return fmt.Errorf("ahead must be a number from 1 to %d", mostAhead)
	case len(q.Weights) > mostWeights:
		return fmt.Errorf("there are %d weights, at most %d are allowed", len(q.Weights), mostWeights)
	case len(q.Key) > longestPartPath || q.Key != "" && slices.Contains(strings.Split(q.Key, "."), ""):
		return errors.New("key must be a path into the job, such as args.0.customer_id, of at most 200 bytes")
	}
	for key, weight := range q.Weights {
		if weight < 1 || weight > mostWeight {
			return fmt.Errorf("the weight of key %.40q must be a number from 1 to %d", key, mostWeight)
		}
	}
	return wire.CheckQueueName(q.Name)
}
