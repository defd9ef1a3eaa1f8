package millracetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// definer is the common part of Fake and Inline that keeps by source what code defines.
type definer struct {
	mu       sync.Mutex
	periodic map[string][]millrace.PeriodicJob
	limits   map[string][]millrace.Limit
	queues   map[string][]millrace.GovernedQueue
}

// Define keeps the periodic jobs of a source. It checks their jobs as a Client does. Nothing is due
// in a test: to run such a job, enqueue its args.
func (d *definer) Define(_ context.Context, source string, jobs ...millrace.PeriodicJob) (millrace.Defined, error) {
	return define(d, &d.periodic, source, jobs, func(j millrace.PeriodicJob) string { return j.Name })
}

// DefineLimits keeps the limits of a source. No limit holds a job back in a test.
func (d *definer) DefineLimits(_ context.Context, source string, limits ...millrace.Limit) (millrace.Defined, error) {
	return define(d, &d.limits, source, limits, func(l millrace.Limit) string { return l.Name })
}

// DefineQueues keeps the governed queues of a source. No queue holds a job back in a test.
func (d *definer) DefineQueues(_ context.Context, source string, queues ...millrace.GovernedQueue) (millrace.Defined, error) {
	return define(d, &d.queues, source, queues, func(q millrace.GovernedQueue) string { return q.Name })
}

// Periodic returns the periodic jobs that a source has defined.
func (d *definer) Periodic(source string) []millrace.PeriodicJob { return of(d, &d.periodic, source) }

// Limits returns the limits that a source has defined.
func (d *definer) Limits(source string) []millrace.Limit { return of(d, &d.limits, source) }

// Queues returns the governed queues that a source has defined.
func (d *definer) Queues(source string) []millrace.GovernedQueue { return of(d, &d.queues, source) }

func of[T any](d *definer, kept *map[string][]T, source string) []T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone((*kept)[source])
}

func define[T interface {
	Definition() (json.RawMessage, error)
}](d *definer, kept *map[string][]T, source string, defined []T, name func(T) string) (millrace.Defined, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	did := millrace.Defined{Made: []string{}, Changed: []string{}, Forgotten: []string{}}
	before := map[string]string{}
	for _, each := range (*kept)[source] {
		text, _ := each.Definition() // it was checked
		before[name(each)] = string(text)
	}
	for _, each := range defined {
		text, err := each.Definition()
		if err != nil {
			return millrace.Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
		}
		switch was, had := before[name(each)]; {
		case !had:
			did.Made = append(did.Made, name(each))
		case was == string(text):
			did.Unchanged++
		default:
			did.Changed = append(did.Changed, name(each))
		}
		delete(before, name(each))
	}
	for name := range before {
		did.Forgotten = append(did.Forgotten, name)
	}
	slices.Sort(did.Forgotten)
	if *kept == nil {
		*kept = map[string][]T{}
	}
	(*kept)[source] = slices.Clone(defined)
	return did, nil
}
