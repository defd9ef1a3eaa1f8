package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// unservedWatch checks whether anyone takes jobs from queues: consumers, or programs that fetch one
// job after another, such as those that lease jobs over HTTP.
type unservedWatch struct {
	conn    *broker.Conn
	isBound func(queue string) bool
	found   chan unserved
	more    chan struct{} // the queues have changed

	mu     sync.Mutex
	queues []string

	seen map[string]*fetched // by queue; used only by run
}

// unserved is the result of a check: whether no one takes jobs from a queue.
type unserved struct {
	queue string
	is    bool
}

// fetched is what earlier checks found in a queue.
type fetched struct {
	jobs    int       // at the last check; 0 if it had consumers
	at      time.Time // when it last had fewer jobs than before
	missing time.Time // when it was last found missing
}

const (
	unservedEvery  = time.Second           // between two rounds
	unservedEach   = 10 * time.Millisecond // the same for each queue, if there are many
	unservedWithin = 5 * time.Second       // for one queue
	unservedAtOnce = 16                    // queues that are checked in parallel
	fetchedFor     = 2 * time.Minute       // a queue counts as served after a fetch
	missingFor     = time.Minute           // between checks of a missing queue; RabbitMQ logs each as an error
)

func newUnservedWatch(conn *broker.Conn, isBound func(queue string) bool) *unservedWatch {
	return &unservedWatch{conn: conn, isBound: isBound, found: make(chan unserved), more: make(chan struct{}, 1), seen: map[string]*fetched{}}
}

// watch sets the queues to check.
func (u *unservedWatch) watch(queues []string) {
	u.mu.Lock()
	u.queues = queues
	u.mu.Unlock()
	wakeUp(u.more)
}

// run checks the queues until the epoch ends. Without any it only waits.
func (u *unservedWatch) run(ctx context.Context) error {
	timer := time.NewTimer(unservedEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-u.more:
		case <-timer.C:
		}
		u.mu.Lock()
		queues := u.queues
		u.mu.Unlock()
		u.forgetOthers(queues)
		var checks errgroup.Group
		checks.SetLimit(unservedAtOnce)
		for _, queue := range queues {
			of := u.seen[queue]
			checks.Go(func() error {
				select {
				case u.found <- unserved{queue, u.isUnserved(ctx, queue, of)}:
				case <-ctx.Done():
				}
				return nil
			})
		}
		_ = checks.Wait() // none fails
		timer.Reset(max(unservedEvery, time.Duration(len(queues))*unservedEach))
	}
}

// forgetOthers forgets all queues but these.
func (u *unservedWatch) forgetOthers(queues []string) {
	seen := map[string]*fetched{}
	for _, queue := range queues {
		if seen[queue] = u.seen[queue]; seen[queue] == nil {
			seen[queue] = &fetched{}
		}
	}
	u.seen = seen
}

// isUnserved reports whether a queue has enough jobs, and no one consumes or fetches them. A queue
// that is missing or cannot be checked counts as served.
func (u *unservedWatch) isUnserved(ctx context.Context, queue string, of *fetched) bool {
	if !of.missing.IsZero() && time.Since(of.missing) < missingFor && !u.isBound(queue) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, unservedWithin)
	defer cancel()
	jobs, consumers, err := u.conn.Queues().Depth(ctx, wire.QueuePrefix+queue)
	if err != nil || consumers > 0 {
		if of.jobs = 0; isMissing(err) {
			of.missing = time.Now()
		}
		return false
	}
	if jobs < of.jobs {
		of.at = time.Now()
	}
	of.jobs = jobs
	return jobs >= occupancy.UnservedAhead && (of.at.IsZero() || time.Since(of.at) > fetchedFor)
}

func isMissing(err error) bool {
	var refusal *broker.QueueError
	return errors.As(err, &refusal) && refusal.Reason == broker.ReasonMissing
}
