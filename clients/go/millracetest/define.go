package millracetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// definer keeps periodic jobs by source.
type definer struct {
	mu   sync.Mutex
	jobs map[string][]millrace.PeriodicJob
}

// Define keeps the periodic jobs of a source. It checks their jobs as a Client does. Nothing is due
// in a test: to run such a job, enqueue its args.
func (f *Fake) Define(_ context.Context, source string, jobs ...millrace.PeriodicJob) (millrace.Defined, error) {
	return f.periodic.define(source, jobs)
}

// Periodic returns the periodic jobs that a source has defined.
func (f *Fake) Periodic(source string) []millrace.PeriodicJob { return f.periodic.of(source) }

// Define keeps the periodic jobs of a source. It checks their jobs as a Client does. Nothing is due
// in a test: to run such a job, enqueue its args.
func (i *Inline) Define(_ context.Context, source string, jobs ...millrace.PeriodicJob) (millrace.Defined, error) {
	return i.periodic.define(source, jobs)
}

// Periodic returns the periodic jobs that a source has defined.
func (i *Inline) Periodic(source string) []millrace.PeriodicJob { return i.periodic.of(source) }

func (d *definer) define(source string, jobs []millrace.PeriodicJob) (millrace.Defined, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	did := millrace.Defined{Made: []string{}, Changed: []string{}, Forgotten: []string{}}
	before := map[string]string{}
	for _, j := range d.jobs[source] {
		text, _ := j.Definition() // it was checked
		before[j.Name] = string(text)
	}
	for _, j := range jobs {
		text, err := j.Definition()
		if err != nil {
			return millrace.Defined{}, fmt.Errorf("millrace: define %s: %w", source, err)
		}
		switch was, had := before[j.Name]; {
		case !had:
			did.Made = append(did.Made, j.Name)
		case was == string(text):
			did.Unchanged++
		default:
			did.Changed = append(did.Changed, j.Name)
		}
		delete(before, j.Name)
	}
	for name := range before {
		did.Forgotten = append(did.Forgotten, name)
	}
	slices.Sort(did.Forgotten)
	if d.jobs == nil {
		d.jobs = map[string][]millrace.PeriodicJob{}
	}
	d.jobs[source] = slices.Clone(jobs)
	return did, nil
}

func (d *definer) of(source string) []millrace.PeriodicJob {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.jobs[source])
}
