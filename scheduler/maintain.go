package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// maintainEvery is how often the topology is asserted: a user may have deleted a part of it.
const maintainEvery = time.Minute

// figuresLag is how long the management API may take to report the policies of a new queue.
const figuresLag = 6 * time.Second

// maintain asserts what a leader needs, on channels of its own. watchWanted asserts the rest.
func (s *Scheduler) maintain(ctx context.Context, conn *broker.Conn) error {
	for next := figuresLag; pause.For(ctx, next) == nil; next = maintainEvery {
		if err := s.prepare(ctx, conn); err != nil {
			s.log.Warn("scheduler: cannot assert the topology", "error", err)
		}
		s.readQueues(ctx) // how long streams are kept may have changed
		if err := s.dropStrayWitnesses(ctx, conn); err != nil {
			s.log.Warn("scheduler: cannot look for the witnesses of nodes that have left the cluster", "error", err)
		}
		if err := s.deleteUnused(ctx, conn, time.Now()); err != nil {
			s.log.Warn("scheduler: cannot look for unused queues", "error", err)
		}
		select {
		case <-conn.Done():
			return nil
		default:
		}
	}
	return nil
}

// assertDirect makes jobs.direct where a client deleted it.
func (s *Scheduler) assertDirect(ctx context.Context, conn *broker.Conn) {
	found, err := conn.AssertDirect(ctx)
	if err != nil {
		s.log.Warn("scheduler: cannot make jobs.direct", "error", err)
	} else {
		s.setStatus(func(st *Status) { st.Accepts = true })
	}
	s.logFindings(found)
}

// unusedFor is how long a queue that Millrace declared may be empty and without consumers before it
// is deleted. Names that nothing consumes must not use up max-queues.
const unusedFor = 24 * time.Hour

func (s *Scheduler) deleteUnused(ctx context.Context, conn *broker.Conn, now time.Time) error {
	for name, used := range s.madeHere() {
		queue := wire.QueuePrefix + name
		messages, consumers, err := conn.QueueDepth(ctx, queue)
		var refusal *broker.QueueError
		switch {
		case errors.As(err, &refusal):
			s.forgetMade(name)
		case err != nil:
			return err
		case messages > 0 || consumers > 0:
			s.noteMade(name)
		case now.Sub(used) > unusedFor:
			err := broker.DeleteIdle(ctx, s.cfg.Broker, queue)
			if err != nil && !errors.As(err, &refusal) && !errors.Is(err, broker.ErrNoConditions) {
				return err
			}
			s.forgetMade(name)
			if err == nil {
				s.log.Info("scheduler: deleted an unused queue", "queue", name)
			}
		}
	}
	return nil
}
