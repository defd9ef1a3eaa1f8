package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/crew"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// flow is work that a row has done beside its jobs: limited, unique, governed or periodic jobs.
type flow interface {
	begin(ctx context.Context) error
	// end waits until everything that must run has run.
	end(ctx context.Context) error
	bound(must func(bool, string, ...any)) error
	close()
	// String says what was counted.
	String() string
}

// homes are the queues of limited, unique and governed jobs: one on a node that may go away, and
// one that is replicated.
var homes = []string{"classic-flow", "quorum-flow"}

// beside is what the flows with workers share. Their workers die all the time.
type beside struct {
	*world
	path  string // what the workers write down
	teams []*crew.Team
	stop  func()
}

// declareHomes declares the queues.
func (b *beside) declareHomes() error {
	b.path = filepath.Join(b.sidecars.dir, "lines")
	return errors.Join(b.declareOn(0, "queue."+homes[0], nil), b.declareOn(0, "queue."+homes[1], amqp.Table{"x-queue-type": "quorum"}))
}

// setUp declares the queues, and starts workers on each.
func (b *beside) setUp(program crew.Program) error {
	if err := b.declareHomes(); err != nil {
		return err
	}
	return b.staffHomes(program)
}

func (b *beside) staffHomes(program crew.Program) (err error) {
	for _, queue := range homes {
		err = errors.Join(err, b.staff(workersEach, program, queue, queue))
	}
	return err
}

// workersEach is how many workers each queue has.
const workersEach = 5

func (b *beside) staff(n int, program crew.Program, name, queue string) error {
	team, err := crew.Start(n, program, b.urls(), b.path, name, queue)
	if err == nil {
		b.teams = append(b.teams, team)
	}
	return err
}

// urls are those of all nodes.
func (b *beside) urls() (all []string) {
	for _, n := range b.nodes.Nodes {
		all = append(all, n.AMQPURL()+b.vhost)
	}
	return all
}

// begins runs these until halted.
func (b *beside) begins(ctx context.Context, all ...func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, do := range all {
		running.Go(func() { do(ctx) })
	}
	b.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// killWorkers kills a worker every few seconds.
func (b *beside) killWorkers(ctx context.Context) {
	for n := 0; pause.For(ctx, workerDies) == nil; n++ {
		team := b.teams[n%len(homes)]
		if err := team.Kill(n / len(homes) % team.Size()); err != nil {
			b.log.Error("a worker is not killed", "error", err)
		}
	}
}

const workerDies = 3 * time.Second

func (b *beside) killed() (n int) {
	for _, team := range b.teams {
		n += team.Killed
	}
	return n
}

// close ends the workers.
func (b *beside) close() {
	if b.stop != nil {
		b.stop()
	}
	for _, team := range b.teams {
		team.Stop()
	}
}

// ask has a sidecar do something, as soon as one can.
func (a *sidecars) ask(ctx context.Context, method, path, body string) (answer []byte, err error) {
	var last string
	err = eventually(ctx, startWithin, method+" "+path, func() bool {
		answer, last = a.try(method, path, body)
		return last == ""
	})
	if errors.Is(err, errNotWithin) {
		return nil, fmt.Errorf("%w: %w: %s", errStandstill, err, last)
	}
	return answer, err
}

// try asks each sidecar until one does it. failed says why none did.
func (a *sidecars) try(method, path, body string) (answer []byte, failed string) {
	for _, s := range a.slots {
		status, got, err := s.process().Do(method, path, body)
		if err == nil && status < http.StatusMultipleChoices {
			return got, ""
		}
		failed = fmt.Sprintf("%d %s %v", status, got, err)
	}
	return nil, failed
}

// comes waits until nothing is missing. It gives up if for a minute nothing comes.
func (b *beside) comes(ctx context.Context, missing func() (int, error)) error {
	least, since := -1, time.Now()
	for {
		n, err := missing()
		if err != nil || n == 0 {
			return err
		}
		if least == -1 || n < least {
			least, since = n, time.Now()
		}
		if time.Since(since) > b.patience {
			return nil // what is missing counts as lost
		}
		if err := pause.For(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// withFlow does the faults of a row while the row's flow runs.
func withFlow(ctx context.Context, w *world, r row) error {
	if w.flow == nil {
		return r.do(ctx, w)
	}
	if err := w.flow.begin(ctx); err != nil {
		return err
	}
	return errors.Join(r.do(ctx, w), w.flow.end(ctx))
}

// inTurn does several faults, one after the other, in a healthy cluster.
func inTurn(all ...func(context.Context, *world) error) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for _, do := range all {
			if err := do(ctx, w); err != nil {
				return err
			}
			if err := w.nodes.healthy(ctx, startWithin); err != nil {
				return err
			}
			if err := w.flows(ctx, w.rate); err != nil {
				return err
			}
		}
		return nil
	}
}
