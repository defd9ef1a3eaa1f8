package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// binder makes and binds queues beside the loop that fires.
type binder struct {
	s     *Scheduler
	conn  *broker.Conn
	bound chan binding // what came of it

	mu    sync.Mutex
	asked []string
	more  chan struct{} // something was asked
}

// binding is what came of an attempt to make and bind a queue.
type binding struct {
	queue string
	err   error
}

func newBinder(s *Scheduler, conn *broker.Conn) *binder {
	return &binder{s: s, conn: conn, bound: make(chan binding), more: make(chan struct{}, 1)}
}

// bind has a queue made and bound. An error says why that is not tried.
func (b *binder) bind(name string) error {
	if b.s.isFatal(name) {
		return errFatalName
	}
	if err := b.s.roomFor(name); err != nil {
		return err
	}
	b.mu.Lock()
	b.asked = append(b.asked, name)
	b.mu.Unlock()
	select {
	case b.more <- struct{}{}:
	default:
	}
	return nil
}

func (b *binder) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}

const (
	// bindAtOnce is how many queues are made concurrently. The broker may not answer about a queue whose
	// node is frozen, until it takes the node for down, after about a minute: the channels of that time
	// must be fewer than a connection has.
	bindAtOnce = 32
	bindWithin = 5 * time.Second
)

// run makes and binds what is asked for, as long as the connection lives.
func (b *binder) run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(bindAtOnce)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-b.more:
			for _, name := range b.take() {
				g.Go(func() error { return b.one(ctx, name) })
			}
		}
	}
	return g.Wait()
}

func (b *binder) one(ctx context.Context, name string) error {
	within, cancel := context.WithTimeout(ctx, bindWithin)
	defer cancel()
	err := b.s.ensure(within, b.conn, name)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, broker.ErrLost):
		b.s.noteFatal(name, errors.Join(err, b.conn.Err())) // the loop that fires ends the epoch
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the broker did not answer for %v: the queue's node may be away", bindWithin)
	}
	select {
	case b.bound <- binding{name, err}:
	case <-ctx.Done():
	}
	return nil
}

// ensure makes a queue if it is missing, and binds it.
func (s *Scheduler) ensure(ctx context.Context, conn *broker.Conn, name string) error {
	existed, err := conn.QueueExists(ctx, wire.QueuePrefix+name)
	if err != nil {
		return err
	}
	if err := conn.EnsureQueue(ctx, name); err != nil {
		return err
	}
	if !existed {
		s.noteMade(name)
	}
	s.noteBound(name)
	return nil
}

// errFatalName is about a queue about which the broker is not asked any more: RabbitMQ 4 cannot say that one is another connection's
// alone if its name is not ASCII, and closes the connection instead.
var errFatalName = errors.New("scheduler: bad name: the broker closed the connection each time that it was asked about this queue")

func (s *Scheduler) noteFatal(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if broker.Provoked(err) && len(s.fatal) < maxBad {
		s.fatal[name]++
	}
}

func (s *Scheduler) isFatal(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal[name] >= maxKills
}

var errTooMany = errors.New("scheduler: no more queues are made")

// roomFor returns an error if a queue is not known and no more of them are made.
func (s *Scheduler) roomFor(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.queues[wire.QueuePrefix+name]; exists || s.jobQueues < s.cfg.MaxQueues {
		return nil
	}
	return fmt.Errorf("%w: there are %d, max-queues is %d", errTooMany, s.jobQueues, s.cfg.MaxQueues)
}

// isBound reports whether a queue is bound to jobs.route, as far as is known.
func (s *Scheduler) isBound(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routed[wire.QueuePrefix+name]
}

// noteBound notes that a queue is there, and bound.
func (s *Scheduler) noteBound(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := wire.QueuePrefix + name
	if _, known := s.queues[queue]; !known {
		s.queues[queue] = false
		s.jobQueues++
	}
	if s.routed == nil {
		s.routed = map[string]bool{}
	}
	s.routed[queue] = true
}

// noteUnbound notes that a queue is not bound any more.
func (s *Scheduler) noteUnbound(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.routed, wire.QueuePrefix+name)
}

// readBindings notes which queues are bound to jobs.route.
func (s *Scheduler) readBindings(ctx context.Context) {
	if s.mgmt == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listQueuesWithin)
	defer cancel()
	routed, err := s.mgmt.BoundTo(ctx, wire.ExchangeRoute)
	if err != nil {
		s.log.Warn("scheduler: cannot list bindings: each queue is looked up before its first job is fired", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routed = routed
}

// countJobQueues returns how many of some queues are job queues.
func countJobQueues(queues map[string]bool) (n int) {
	for q := range queues {
		if strings.HasPrefix(q, wire.QueuePrefix) {
			n++
		}
	}
	return n
}
