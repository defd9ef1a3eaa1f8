package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/crew"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// fullFlow has as many jobs wait for governed queues as may, while programs that know nothing of
// that publish more. Workers come at the end.
type fullFlow struct {
	plainJobs
	taken map[string]int // how many jobs were confirmed, by the state of the queues then
}

func newFull(w *world) flow {
	return &fullFlow{plainJobs: plainJobs{beside: beside{world: w}}, taken: map[string]int{}}
}

func (f *fullFlow) begin(ctx context.Context) error {
	if err := f.declareHomes(); err != nil {
		return err
	}
	if err := f.govern(ctx, `{"max_waiting":100,"paused":true}`); err != nil {
		return err
	}
	for _, queue := range homes {
		if err := f.staff(1, crew.Producer(10*time.Millisecond), "p-"+queue, queue); err != nil {
			return err
		}
	}
	f.begins(ctx, f.watch)
	return f.become(ctx, wire.QueueFull)
}

// state returns the state of all governed queues, empty if they differ or no sidecar answers.
func (f *fullFlow) state() string {
	answer, failed := f.try(http.MethodGet, "/api/governed-queues", "")
	states := gjson.GetBytes(answer, "#.state").Array()
	differs := func(state gjson.Result) bool { return state.String() != states[0].String() }
	if failed != "" || len(states) == 0 || slices.ContainsFunc(states, differs) {
		return ""
	}
	return states[0].String()
}

// become waits until the sidecars say that all governed queues are in a state.
func (f *fullFlow) become(ctx context.Context, state string) error {
	err := eventually(ctx, startWithin, "the governed queues are "+state, func() bool { return f.state() == state })
	if errors.Is(err, errNotWithin) {
		return fmt.Errorf("%w: %w: they are %q", errStandstill, err, f.state())
	}
	return err
}

// watch counts the jobs that are confirmed in each state.
func (f *fullFlow) watch(ctx context.Context) {
	for sure := 0; pause.For(ctx, 300*time.Millisecond) == nil; {
		state := f.state()
		if log, err := crew.ReadGoverned(f.path); err == nil {
			f.taken[state] += len(log.Sure) - sure
			sure = len(log.Sure)
		}
	}
}

func (f *fullFlow) end(ctx context.Context) error {
	if err := f.become(ctx, wire.QueueFull); err != nil {
		return err
	}
	f.close()
	if err := f.govern(ctx, `{"max_waiting":100}`); err != nil {
		return err
	}
	if err := f.staffHomes(crew.Plain()); err != nil {
		return err
	}
	return f.come(ctx)
}

func (f *fullFlow) bound(must func(bool, string, ...any)) error {
	f.close()
	// What was taken shortly before counts too: the states are looked at three times a second.
	must(f.taken[wire.QueueFull] < 300, "full queues took jobs: %v", f.taken)
	_, shown := f.taken[wire.QueueSuspended]
	must(shown, "no sidecar said that the queues are %s: %v", wire.QueueSuspended, f.taken)
	return f.plainJobs.bound(must)
}

func (f *fullFlow) String() string {
	if f.log == nil {
		return ""
	}
	return fmt.Sprintf("%d plain jobs, taken by the state of their queues: %v", len(f.log.Sure), f.taken)
}

// fullAway kills the node of the queue that refuses jobs.
func fullAway(ctx context.Context, w *world) error {
	node := w.nodes.home(ctx, w.vhost, wire.Full)
	if node == -1 {
		return errors.New("there is no queue " + wire.Full)
	}
	if err := w.leadElsewhere(ctx, node); err != nil {
		return err
	}
	return w.nodeAway(ctx, node, nothingElse, classic(node))
}
