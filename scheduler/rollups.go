package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Rollups gives what is to be published of metrics.
type Rollups interface {
	// Pieces returns the next roll-ups, at most n, without those that were read back.
	Pieces(n int) ([]wire.Rollup, error)
}

const (
	rollupEvery   = time.Second
	rollupsAtOnce = 16
	readBackIn    = 30 * time.Second // after which one is published again; a repeated one counts once
)

// rollUp publishes roll-ups, on the connection that holds the lock: a leader that has ended
// publishes none.
func (s *services) rollUp(ctx context.Context, conn *broker.Conn) error {
	if s.cfg.Rollups == nil {
		return nil
	}
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return nil //nolint:nilerr // the connection is lost, and ends the leader
	}
	var sent wire.Rollup
	var sentAt time.Time
	for pause.For(ctx, rollupEvery) == nil {
		pieces, err := s.cfg.Rollups.Pieces(rollupsAtOnce)
		if err != nil {
			return fmt.Errorf("scheduler: roll up metrics: %w", err)
		}
		for _, piece := range pieces {
			if piece.Generation == sent.Generation && piece.To <= sent.To && time.Since(sentAt) < readBackIn {
				continue
			}
			m, err := piece.Message(time.Now())
			if err != nil {
				return fmt.Errorf("scheduler: roll up metrics: %w", err)
			}
			if err := pub.SendMandatory(ctx, m); err != nil {
				s.log.Warn("scheduler: cannot publish a roll-up of metrics", "error", err)
				break
			}
			sent, sentAt = piece, time.Now()
		}
	}
	return nil
}
