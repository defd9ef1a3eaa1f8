package scheduler

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A worker that does not report the ends of its jobs leaves their slots held, and so does a user who
// purges a queue. A slot is freed if its queue has no message, ready or with a worker, at two times
// with a pause between them. The job was fired so long before that it would be there.

const (
	slotAuditEvery = 15 * time.Second
	slotAuditAfter = 30 * time.Second // after the slot was seen first; the figures of a broker are late by up to ten seconds
	slotAuditPause = 10 * time.Second
)

// slotAudit looks for slots whose jobs are gone.
type slotAudit struct {
	entries *tracker.Reader
	queues  func(context.Context) ([]broker.QueueInfo, error) // nil without the management API
	seen    map[ledger.EntryID]time.Time                      // when a slot was seen first
	gone    chan []wire.HeldSlot                              // to the loop
	between time.Duration                                     // from one look at the queues to the next
}

// run looks again and again while the epoch lasts.
func (a *slotAudit) run(ctx context.Context) error {
	for pause.For(ctx, slotAuditEvery) == nil {
		gone, err := a.look(ctx)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			continue
		}
		select {
		case a.gone <- gone:
		case <-ctx.Done():
		}
	}
	return nil
}

// look returns the slots whose jobs are gone.
func (a *slotAudit) look(ctx context.Context) (gone []wire.HeldSlot, err error) {
	held, err := a.old(time.Now())
	if err != nil || len(held) == 0 || a.queues == nil {
		return nil, err
	}
	first := a.empty(ctx)
	if len(first) == 0 || pause.For(ctx, a.between) != nil {
		return nil, nil
	}
	second := a.empty(ctx)
	for _, h := range held {
		queue := wire.QueuePrefix + h.Queue
		if !first[queue] || !second[queue] {
			continue
		}
		leased, err := a.entries.Leases(h.JID) // a lease has taken the job out of its queue
		if err != nil {
			return nil, err
		}
		if len(leased) == 0 {
			gone = append(gone, h)
		}
	}
	return gone, nil
}

// old returns the slots that were seen long ago.
func (a *slotAudit) old(now time.Time) (all []wire.HeldSlot, err error) {
	seen := map[ledger.EntryID]time.Time{}
	err = a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		at := ledger.ID(h.Stream, h.Offset)
		since, known := a.seen[at]
		if !known {
			since = now
		}
		seen[at] = since
		if now.Sub(since) >= slotAuditAfter {
			all = append(all, *h)
		}
		return true
	})
	a.seen = seen
	return all, err
}

// empty returns the job queues that have no messages. It knows none if the broker does not answer.
func (a *slotAudit) empty(ctx context.Context) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, slotAuditPause)
	defer cancel()
	queues, err := a.queues(ctx)
	if err != nil {
		return nil
	}
	empty := map[string]bool{}
	for _, q := range queues {
		empty[q.Name] = q.Messages == 0 && q.State != "down" && q.State != "stopped"
	}
	return empty
}
