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

// unservedWatch looks whether someone takes jobs from queues: consumers, or programs that fetch one
// job after another, such as those that lease jobs over HTTP.
type unservedWatch struct {
	conn    *broker.Conn
	isBound func(queue string) bool
	found   chan unserved
	more    chan struct{} // there are other queues

	mu     sync.Mutex
	queues []string

	seen map[string]*fetched // by queue; only the goroutine that looks uses it
}

// unserved says whether no one takes jobs from a queue that has some.
type unserved struct {
	queue string
	is    bool
}

// fetched is what is known of a queue without consumers.
type fetched struct {
	jobs    int       // at the last look; 0 if it had consumers
	at      time.Time // when it had fewer than before
	missing time.Time // when it did not exist
}

const (
	unservedEvery  = time.Second           // between two looks
	unservedEach   = 10 * time.Millisecond // at least, for each queue
	unservedWithin = 5 * time.Second       // for one queue
	unservedAtOnce = 16                    // queues that are looked at together
	fetchedFor     = 2 * time.Minute       // a queue counts as served after jobs were fetched from it
	missingFor     = time.Minute           // then it is looked again whether it exists: RabbitMQ logs an error if not
)

func newUnservedWatch(conn *broker.Conn, isBound func(queue string) bool) *unservedWatch {
	return &unservedWatch{conn: conn, isBound: isBound, found: make(chan unserved), more: make(chan struct{}, 1), seen: map[string]*fetched{}}
}

// watch has queues looked at, in place of those before.
func (u *unservedWatch) watch(queues []string) {
	u.mu.Lock()
	u.queues = queues
	u.mu.Unlock()
	wakeUp(u.more)
}

// run looks at queues until the epoch ends. Without any it only waits.
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
		var looks errgroup.Group
		looks.SetLimit(unservedAtOnce)
		for _, queue := range queues {
			of := u.seen[queue]
			looks.Go(func() error {
				select {
				case u.found <- unserved{queue, u.isUnserved(ctx, queue, of)}:
				case <-ctx.Done():
				}
				return nil
			})
		}
		_ = looks.Wait() // no look fails
		timer.Reset(max(unservedEvery, time.Duration(len(queues))*unservedEach))
	}
}

// forgetOthers keeps what is known of some queues only.
func (u *unservedWatch) forgetOthers(queues []string) {
	seen := map[string]*fetched{}
	for _, queue := range queues {
		if seen[queue] = u.seen[queue]; seen[queue] == nil {
			seen[queue] = &fetched{}
		}
	}
	u.seen = seen
}

// isUnserved reports whether a queue has no consumers, has jobs enough, and none are fetched from
// it. A queue of which nothing can be learned counts as served. So does one that does not exist yet.
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
