package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Earlier versions keep dead letters in another queue, a classic one. A leader binds the new queue,
// unbinds the old one, empties it and deletes it. Each step can be repeated, and is: a sidecar of
// an earlier version that still runs declares the old queue again. A letter that came into both
// queues is buried once.

const (
	lettersEvery = time.Minute     // how often the old queue is looked for
	lettersAgain = time.Second     // while it is there
	lettersRest  = 2 * time.Second // how long it must be empty and unused to be deleted
)

// migrateDeadLetters moves dead letters out of the old queue, as long as the connection lives.
func (s *Scheduler) migrateDeadLetters(ctx context.Context, conn *broker.Conn) error {
	bad := badBodies{}
	// It begins late: what is in both queues is buried from the new one first.
	for next := lettersRest; pause.For(ctx, next) == nil && conn.Err() == nil; {
		there, err := s.migrateOnce(ctx, conn, bad)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("scheduler: cannot move the dead letters of an earlier version", "queue", wire.OldDeadLetters, "error", err)
		}
		if errors.Is(err, errLettersStay) {
			return nil
		}
		next = lettersEvery
		if there && err == nil {
			next = lettersAgain
		}
	}
	return nil
}

// migrateOnce reports whether the old queue exists. It empties the queue, or deletes it if it is
// empty.
func (s *Scheduler) migrateOnce(ctx context.Context, conn *broker.Conn, bad badBodies) (there bool, err error) {
	messages, consumers, err := conn.Queues().Depth(ctx, wire.OldDeadLetters)
	if broker.IsMissing(err) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	if err := conn.Topology().RetireDeadLetters(ctx); err != nil {
		return true, err
	}
	if messages == 0 && consumers == 0 {
		return true, s.deleteOldLetters(ctx, conn)
	}
	emptying, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	watch.Go(func() {
		defer stop()
		for pause.For(emptying, lettersAgain) == nil {
			if messages, _, err := conn.Queues().Depth(emptying, wire.OldDeadLetters); err != nil || messages == 0 {
				return
			}
		}
	})
	return true, s.consumeFrom(emptying, conn, wire.OldDeadLetters, bad)
}

// errLettersStay is returned if the broker does not delete the old queue, which stays empty.
var errLettersStay = errors.New("scheduler: the queue is empty, and nothing comes into it: delete it by hand")

// deleteOldLetters deletes the old queue if it stays empty. A quorum queue remains, empty and
// unbound.
func (s *Scheduler) deleteOldLetters(ctx context.Context, conn *broker.Conn) error {
	if err := pause.For(ctx, lettersRest); err != nil {
		return err
	}
	if messages, consumers, err := conn.Queues().Depth(ctx, wire.OldDeadLetters); err != nil || messages > 0 || consumers > 0 {
		return err
	}
	if err := broker.DeleteIdle(ctx, s.cfg.Broker, wire.OldDeadLetters); err != nil {
		return fmt.Errorf("%w: %w", errLettersStay, err)
	}
	s.log.Info("scheduler: deleted the queue of dead letters of an earlier version", "queue", wire.OldDeadLetters)
	return nil
}
