package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// aloneQueues looks at queues of which no worker says that it serves them. Something may serve them
// that says nothing: a plain consumer, or a program that fetches one job after another.
type aloneQueues struct {
	conn *broker.Conn

	mu     sync.Mutex
	queues []string
	alone  map[string]bool // those without consumers and with jobs enough
}

const (
	aloneEvery  = time.Second           // between two looks
	aloneEach   = 10 * time.Millisecond // the same for each queue, if there are many
	aloneWithin = 5 * time.Second       // for one queue
)

// look has queues looked at, in place of those before. It returns what the last look has found.
func (a *aloneQueues) look(queues []string) map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queues = queues
	return a.alone
}

// run looks at queues until the epoch ends. Without any it only waits.
func (a *aloneQueues) run(ctx context.Context) error {
	timer := time.NewTimer(aloneEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		a.mu.Lock()
		queues := a.queues
		a.mu.Unlock()
		found := map[string]bool{}
		for _, queue := range queues {
			if a.isAlone(ctx, queue) {
				found[queue] = true
			}
		}
		a.mu.Lock()
		a.alone = found
		a.mu.Unlock()
		timer.Reset(max(aloneEvery, time.Duration(len(queues))*aloneEach))
	}
}

// isAlone reports whether a queue has no consumers and enough jobs. A queue of which nothing can be
// learned is not held back.
func (a *aloneQueues) isAlone(ctx context.Context, queue string) bool {
	ctx, cancel := context.WithTimeout(ctx, aloneWithin)
	defer cancel()
	jobs, consumers, err := a.conn.Queues().Depth(ctx, wire.QueuePrefix+queue)
	return err == nil && consumers == 0 && jobs >= occupancy.LeastAhead
}
