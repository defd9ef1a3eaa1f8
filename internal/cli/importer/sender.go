package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// sender enters jobs over one connection, which it makes again when it is lost.
type sender struct {
	cfg      broker.Config
	patience time.Duration // how long one job is tried
	waiting  Waiting

	mu   sync.Mutex
	link *link
}

const (
	dialWithin   = 20 * time.Second
	longestPause = 2 * time.Second // between attempts
)

// refusedError is the reason for which a job was not entered, and never will be.
type refusedError struct{ reason string }

func (r *refusedError) Error() string { return r.reason }

// connect returns the connection, and makes one if there is none.
func (s *sender) connect(ctx context.Context) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil && !s.link.ended() {
		return s.link, nil
	}
	s.hangUp()
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	var err error
	s.link, err = openLink(ctx, s.cfg)
	return s.link, err
}

func (s *sender) hangUp() {
	if s.link != nil {
		_ = s.link.conn.Close()
	}
	s.link = nil
}

func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUp()
}

// enter enters a job. It tries again until the leader or the broker has it, ctx ends, or the
// patience does. It returns a *refusedError if the job can never be entered.
//
// What was sent is waited for, also if ctx ends meanwhile.
func (s *sender) enter(ctx context.Context, e *entry) error {
	retry := pause.Growing(longestPause)
	begun := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.try(context.WithoutCancel(ctx), e)
		if err == nil || errors.As(err, new(*refusedError)) || broker.CausedByClient(err) {
			return err
		}
		if time.Since(begun) > s.patience {
			return fmt.Errorf("given up after %s: %w", time.Since(begun).Round(time.Second), err)
		}
		if err := pause.For(ctx, retry.NextBackOff()); err != nil {
			return err
		}
	}
}

func (s *sender) try(ctx context.Context, e *entry) error {
	l, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if e.stream() != "" {
		err = s.publish(ctx, l, e)
	} else {
		err = s.command(ctx, l, e)
	}
	if errors.Is(err, broker.ErrUnpublishable) {
		return &refusedError{"no broker can take this job: " + err.Error()}
	}
	return err
}

// publish publishes a record, unless it waits already. The scheduler would drop the repeat only
// when it delivers the job, and until then the list would have the job twice.
func (s *sender) publish(ctx context.Context, l *link, e *entry) error {
	records, err := s.waiting(ctx, e.stream(), e.jid)
	if err != nil {
		return err
	}
	for _, record := range records {
		if record == nil || bytes.Equal(record, e.body) {
			return nil
		}
	}
	if len(records) > 0 {
		return &refusedError{fmt.Sprintf("another entry of %s has this jid", e.stream())}
	}
	return l.publish(ctx, e)
}

func (s *sender) command(ctx context.Context, l *link, e *entry) error {
	r, err := l.ask(ctx, e.body)
	if err != nil {
		return err
	}
	reason := cmp.Or(r.Reason, r.Error)
	switch r.Status {
	case wire.StatusOK:
		return nil
	case wire.StatusConflict:
		return &refusedError{"the leader entered another job under this jid and --name within the last day"}
	case wire.StatusUnavailable, wire.StatusUnknown:
		return errors.New(reason)
	}
	return &refusedError{fmt.Sprintf("the leader refused it: %s", reason)}
}
