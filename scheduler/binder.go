package scheduler

import (
	"context"
	"errors"
	"fmt"
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
	// bindAtOnce is how many queues are declared concurrently. The broker may not answer about a
	// queue on a frozen node for about a minute, until it takes the node for down. The channels of
	// that time must be fewer than a connection has.
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
	existed, err := conn.Queues().Exists(ctx, wire.QueuePrefix+name)
	if err != nil {
		return err
	}
	if err := s.bindQueue(ctx, conn, name); err != nil {
		return err
	}
	if !existed {
		s.noteMade(name)
	}
	s.noteBound(name)
	return nil
}
