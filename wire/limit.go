package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// KindLimit is the kind of the definitions of limits.
const KindLimit = "limit"

// Limit is the definition of a limit: how many jobs may run at once, and how many may begin in a
// time. It is about the gated jobs of its queues and classes.
type Limit struct {
	Queues      []string         `json:"queues,omitempty"`  // none: all
	Classes     []string         `json:"classes,omitempty"` // none: all
	Per         []string         `json:"per,omitempty"`     // what has a limit of its own: each queue, class or key
	Concurrency int64            `json:"concurrency,omitempty"`
	Rate        *Rate            `json:"rate,omitempty"`
	Overrides   map[string]Bound `json:"overrides,omitempty"` // by key
	Paused      bool             `json:"paused,omitempty"`
}

// Bound is what an override sets. What it leaves out is as for other keys.
type Bound struct {
	Concurrency int64 `json:"concurrency,omitempty"`
	Rate        *Rate `json:"rate,omitempty"`
}

// Rate is how many jobs may begin in a time. They begin evenly spread over it. Up to Burst may
// begin at once after a pause. In any such time at most Jobs + Burst − 1 begin, also where a leader
// that was late catches up.
type Rate struct {
	Jobs    int64   `json:"jobs"`
	Seconds float64 `json:"seconds"`
	Burst   int64   `json:"burst,omitempty"` // 1, if it is left out
}

// What limits can be per.
const (
	PerQueue = "queue"
	PerClass = "class"
	PerKey   = "key"
)

// Limits of limits.
const (
	MaxLimits      = 1000
	MaxConcurrency = 1_000_000
	MaxOverrides   = 10_000
	maxRateSeconds = 31 * 24 * 3600
)

// Interval returns the time from one job to the next, in microseconds. The jobs are spread over
// what may be caught up too: so Seconds never have more of them than they may.
func (r *Rate) Interval() int64 {
	return int64(math.Ceil((r.Seconds*1e6 + float64(r.catchUp())) / float64(r.Jobs)))
}

// Ahead returns how far a rate may be used ahead of now, in microseconds.
func (r *Rate) Ahead() int64 { return max(r.Burst-1, 0)*r.Interval() + r.catchUp() }

// catchUp returns how late jobs may begin without making those behind them late, in microseconds:
// 0.5 % of Seconds, at most 50 ms.
func (r *Rate) catchUp() int64 { return int64(min(r.Seconds*5e3, 50e3)) }

// check returns an error if the rate cannot be kept.
func (r *Rate) check() error {
	switch {
	case r == nil:
		return nil
	case r.Jobs < 1 || r.Jobs > MaxConcurrency:
		return fmt.Errorf("jobs of a rate is a number from 1 to %d", MaxConcurrency)
	case r.Seconds < 1 || r.Seconds > maxRateSeconds:
		return fmt.Errorf("seconds of a rate is a number from 1 to %d", maxRateSeconds)
	case r.Burst < 0 || r.Burst > r.Jobs:
		return fmt.Errorf("burst of a rate is a number from 1 to %d, which are its jobs", r.Jobs)
	}
	return nil
}

// ParseLimit parses a definition, or a layer of one, and checks what is there.
func ParseLimit(raw []byte) (l Limit, err error) {
	if err := decodeLayer(raw, &l); err != nil {
		return l, err
	}
	return l, l.check()
}

func (l *Limit) check() error {
	for _, queue := range l.Queues {
		if err := CheckQueueName(queue); err != nil {
			return fmt.Errorf("queues: %w", err)
		}
	}
	if slices.Contains(l.Classes, "") {
		return errors.New("classes has an empty class")
	}
	for i, per := range l.Per {
		if !slices.Contains([]string{PerQueue, PerClass, PerKey}, per) || slices.Contains(l.Per[:i], per) {
			return fmt.Errorf("per has %.40q: use queue, class and key, each at most once", per)
		}
	}
	if err := checkBound(Bound{l.Concurrency, l.Rate}); err != nil {
		return err
	}
	if len(l.Overrides) > MaxOverrides {
		return fmt.Errorf("there are %d overrides, at most %d are allowed", len(l.Overrides), MaxOverrides)
	}
	for key, bound := range l.Overrides {
		if err := checkBound(bound); err != nil {
			return fmt.Errorf("override of key %q: %w", Shorten(key, 40), err)
		}
	}
	return nil
}

func checkBound(b Bound) error {
	if b.Concurrency < 0 || b.Concurrency > MaxConcurrency {
		return fmt.Errorf("concurrency is a number from 1 to %d", MaxConcurrency)
	}
	return b.Rate.check()
}

// CheckWhole returns an error if the definition is not complete.
func (l *Limit) CheckWhole() error {
	if l.Concurrency == 0 && l.Rate == nil {
		return errors.New("it limits nothing: give concurrency or rate")
	}
	if len(l.Overrides) > 0 && !slices.Contains(l.Per, PerKey) {
		return errors.New("overrides are for single keys: per must have \"key\"")
	}
	return nil
}

// Covers reports whether the limit is about the jobs of a group.
func (l *Limit) Covers(g Group) bool {
	return l.CoversQueue(g.Queue) && (len(l.Classes) == 0 || slices.Contains(l.Classes, g.Class))
}

// CoversQueue reports whether the limit is about jobs of a queue, of all or of some classes.
func (l *Limit) CoversQueue(queue string) bool {
	return len(l.Queues) == 0 || slices.Contains(l.Queues, queue)
}

// Of returns the bound of the jobs of a group, and the part of it that the limit counts apart
// from others.
func (l *Limit) Of(g Group) (Bound, Group) {
	b, part := Bound{l.Concurrency, l.Rate}, Group{}
	for _, per := range l.Per {
		switch per {
		case PerQueue:
			part.Queue = g.Queue
		case PerClass:
			part.Class = g.Class
		case PerKey:
			part.Key = g.Key
			if o, is := l.Overrides[g.Key]; is {
				if o.Concurrency > 0 {
					b.Concurrency = o.Concurrency
				}
				if o.Rate != nil {
					b.Rate = o.Rate
				}
			}
		}
	}
	return b, part
}

// RateID returns the name of the state of a rate for a part of the jobs. A rate that is changed
// begins again.
func RateID(limit string, r *Rate, part Group) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %q %q %q", *r, part.Queue, part.Class, part.Key))
	return limit + "~" + hex.EncodeToString(sum[:8])
}

// DefinedLimit is what is known of a limit: the layers of its definition.
type DefinedLimit struct {
	Name   string                  `json:"name"`
	Layers map[string]DefinedLayer `json:"layers"`
}

// Merged returns the definition that the layers make. A stronger layer wins, member by member.
func (d *DefinedLimit) Merged() (json.RawMessage, error) { return mergeLayers(d.Layers) }

// Definition returns the merged definition. It returns an error if that is not complete.
func (d *DefinedLimit) Definition() (Limit, error) {
	merged, err := d.Merged()
	if err != nil {
		return Limit{}, err
	}
	l, err := ParseLimit(merged)
	if err != nil {
		return l, err
	}
	return l, l.CheckWhole()
}

// LimitPiece has some of the limits, and of the rates that are in use: a carry-over writes them
// again.
type LimitPiece struct {
	Limits []DefinedLimit   `json:"limits"`
	Rates  map[string]int64 `json:"rates,omitempty"` // see RateUse
	More   bool             `json:"more,omitempty"`  // it adds to the piece before it; else it replaces what was known
}

// CheckLimitName returns an error if no limit can have this name.
func CheckLimitName(name string) error {
	if !definedName.MatchString(name) {
		return fmt.Errorf("%.80q is no name of a limit: use 1 to 64 letters, digits, dots, hyphens and underscores", name)
	}
	return nil
}
