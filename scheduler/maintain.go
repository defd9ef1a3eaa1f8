package scheduler

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/broker"
)

// maintainEvery is how often the topology is asserted again: an operator may have deleted a part of it.
const maintainEvery = time.Minute

// maintain asserts topology and policies again and again, on channels apart from the firing channel.
func (s *Scheduler) maintain(ctx context.Context, conn *broker.Conn) error {
	for {
		if err := s.assertPolicies(ctx); err != nil {
			s.log.Warn("scheduler: cannot set policies", "error", err)
		}
		if sleep(ctx, maintainEvery) != nil {
			return nil
		}
		if err := s.prepare(ctx, conn); err != nil {
			s.log.Warn("scheduler: cannot assert the topology", "error", err)
		}
		select {
		case <-conn.Done():
			return nil
		default:
		}
	}
}

func (s *Scheduler) assertPolicies(ctx context.Context) error {
	if s.mgmt == nil {
		return nil
	}
	findings, err := s.mgmt.Policies(ctx)
	for _, f := range findings {
		s.log.Warn("scheduler: "+f.Problem, "subject", f.Subject, "remedy", f.Remedy)
	}
	return err
}
