package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/internal/crew"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// governedFlow governs queues and ends that, again and again, while programs that know nothing of
// it publish plain jobs for them.
type governedFlow struct {
	plainJobs
	switches int
}

func newGoverned(w *world) flow { return &governedFlow{plainJobs: plainJobs{beside: beside{world: w}}} }

// governEvery is how often a queue is governed, or no longer.
const governEvery = 5 * time.Second

func (f *governedFlow) begin(ctx context.Context) error {
	if err := f.setUp(crew.Plain()); err != nil {
		return err
	}
	for _, queue := range homes {
		if err := f.staff(1, crew.Producer(10*time.Millisecond), "p-"+queue, queue); err != nil {
			return err
		}
	}
	f.begins(ctx, f.switchOver, f.killWorkers)
	return nil
}

func (f *governedFlow) switchOver(ctx context.Context) {
	for n := 0; pause.For(ctx, governEvery) == nil; n++ {
		for _, queue := range homes {
			method, body := http.MethodPut, `{"key":"args.0","ahead":50}`
			if n%2 == 1 {
				method, body = http.MethodDelete, ""
			}
			if _, failed := f.try(method, "/api/governed-queues/"+queue, body); failed == "" {
				f.switches++
			}
		}
	}
}

func (f *governedFlow) end(ctx context.Context) error {
	f.stop()
	for _, producers := range f.teams[len(homes):] {
		producers.Stop()
	}
	if err := f.govern(ctx, "{}"); err != nil {
		return err
	}
	return f.come(ctx)
}

func (f *governedFlow) bound(must func(bool, string, ...any)) error {
	must(f.switches > 3, "it was switched %d times", f.switches)
	return f.plainJobs.bound(must)
}

func (f *governedFlow) String() string {
	if f.log == nil {
		return ""
	}
	return fmt.Sprintf("%d plain jobs, %d switches, %d copies fired again, %d workers killed", len(f.log.Sure), f.switches, f.log.Refired, f.killed())
}

// plainJobs are jobs of programs that know nothing of Millrace, for governed queues.
type plainJobs struct {
	beside
	log *crew.Governed
}

// govern governs the queues.
func (p *plainJobs) govern(ctx context.Context, definition string) error {
	for _, queue := range homes {
		if _, err := p.ask(ctx, http.MethodPut, "/api/governed-queues/"+queue, definition); err != nil {
			return err
		}
	}
	return nil
}

// come waits until all jobs have come that the broker has confirmed.
func (p *plainJobs) come(ctx context.Context) error {
	return p.comes(ctx, func() (missing int, err error) {
		if p.log, err = crew.ReadGoverned(p.path); err == nil {
			missing = len(p.log.Missing())
		}
		return missing, err
	})
}

// bound checks that each job came, and none twice but for those of a leader that could not know.
func (p *plainJobs) bound(must func(bool, string, ...any)) (err error) {
	if p.log, err = crew.ReadGoverned(p.path); err != nil {
		return err
	}
	missing, twice := p.log.Missing(), p.log.Twice()
	must(len(missing) == 0, "%d plain jobs are lost: %.20q", len(missing), missing)
	must(len(twice) == 0, "%d plain jobs came twice: %.20q", len(twice), twice)
	return nil
}
