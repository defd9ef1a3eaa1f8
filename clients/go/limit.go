package millrace

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Limit says how many limited jobs may run at once, or how many may begin in a time. Jobs are
// limited by EnqueueOptions.LimitKey and Limited. What is zero has the default of a definition.
type Limit struct {
	Name    string
	Queues  []string // the limit is about jobs of these queues; all if empty
	Classes []string // the same with classes
	Per     []Part   // what has a limit of its own; there is one for all jobs if empty

	Concurrency int              // how many jobs may run at once
	Rate        *Rate            // how many may begin in a time
	Overrides   map[string]Bound // for single keys
	Paused      bool
}

// Part is what a limit can be per.
type Part string

// What a limit can be per.
const (
	PerQueue Part = "queue"
	PerClass Part = "class"
	PerKey   Part = "key"
)

// Rate is how many jobs may begin in a time.
type Rate struct {
	Jobs  int
	In    time.Duration
	Burst int // how many may begin at once after a pause; 1 if zero
}

// Bound is what an override sets. What is zero is as for other keys.
type Bound struct {
	Concurrency int
	Rate        *Rate
}

// DefineLimits sets all limits of a source, as Define does with periodic jobs. What Define has set
// stays as it is.
func (c *Client) DefineLimits(ctx context.Context, source string, limits ...Limit) (Defined, error) {
	all := make([]json.RawMessage, len(limits))
	for i, l := range limits {
		var err error
		if all[i], err = l.Definition(); err != nil {
			return Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
		}
	}
	return c.defineAll(ctx, source, "limits", all)
}

// DefineQueues sets all governed queues of a source, as Define does with periodic jobs. What
// Define and DefineLimits have set stays as it is.
func (c *Client) DefineQueues(ctx context.Context, source string, queues ...GovernedQueue) (Defined, error) {
	all := make([]json.RawMessage, len(queues))
	for i, q := range queues {
		var err error
		if all[i], err = q.Definition(); err != nil {
			return Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
		}
	}
	return c.defineAll(ctx, source, "queues", all)
}

// defineAll sends the definitions of one kind.
func (c *Client) defineAll(ctx context.Context, source, kind string, all []json.RawMessage) (Defined, error) {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	id := newJID()
	body, err := marshal(map[string]any{"id": id, "command": wire.CommandDefine, "definitions": map[string]any{"source": source, kind: all}})
	if err != nil {
		return Defined{}, fmt.Errorf("millrace: define %s: %w: %w", source, ErrInvalid, err)
	}
	did, err := c.ask(ctx, id, body)
	if err != nil {
		return Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
	}
	return did, nil
}

// Definition returns the definition of the limit as JSON. It is for test helpers.
func (l Limit) Definition() (json.RawMessage, error) {
	m := map[string]any{"name": l.Name}
	if len(l.Queues) > 0 {
		m["queues"] = l.Queues
	}
	if len(l.Classes) > 0 {
		m["classes"] = l.Classes
	}
	if len(l.Per) > 0 {
		m["per"] = l.Per
	}
	Bound{l.Concurrency, l.Rate}.addTo(m)
	if len(l.Overrides) > 0 {
		overrides := map[string]any{}
		for key, b := range l.Overrides {
			one := map[string]any{}
			b.addTo(one)
			overrides[key] = one
		}
		m["overrides"] = overrides
	}
	if l.Paused {
		m["paused"] = true
	}
	text, err := marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: limit %q: %w", ErrInvalid, l.Name, err)
	}
	return text, nil
}

func (b Bound) addTo(m map[string]any) {
	if b.Concurrency != 0 {
		m["concurrency"] = b.Concurrency
	}
	if r := b.Rate; r != nil {
		rate := map[string]any{"jobs": r.Jobs, "seconds": r.In.Seconds()}
		if r.Burst != 0 {
			rate["burst"] = r.Burst
		}
		m["rate"] = rate
	}
}
