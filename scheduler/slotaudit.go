package scheduler

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// A worker that does not report the ends of its jobs leaves their slots held, and so does a user
// who purges a queue. The broker's figures show it: each job that holds a slot is a message of its
// queue, ready or with a worker. If a queue has fewer messages than slots, at two times with a
// pause between them, the oldest slots beyond that number are freed. Slots of jobs that were fired
// a moment ago are left out, because the figures are late.

const (
	slotAuditEvery = 15 * time.Second
	slotAuditAfter = 30 * time.Second // after the slot was seen first; the figures of a broker are late by up to ten seconds
	slotAuditPause = 10 * time.Second
)

// slotAudit looks for slots whose jobs are gone.
type slotAudit struct {
	entries *tracker.Reader
	queues  func(context.Context) ([]broker.QueueInfo, error) // nil without the management API
	seen    map[seenSlot]time.Time                            // when a slot was seen first
	gone    chan []wire.HeldSlot                              // to the loop
	between time.Duration                                     // from one look at the queues to the next
}

// seenSlot is a slot with so many fires: one that is fired again is seen for the first time.
type seenSlot struct {
	ledger.EntryID
	fires int
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
	first := a.messages(ctx)
	if first == nil || pause.For(ctx, a.between) != nil {
		return nil, nil
	}
	second := a.messages(ctx)
	if second == nil {
		return nil, nil
	}
	for queue, slots := range held {
		most := max(first(queue), second(queue))
		if most < 0 || most >= int64(len(slots)) {
			continue
		}
		slices.SortStableFunc(slots, func(a, b wire.HeldSlot) int { return cmp.Compare(a.At, b.At) })
		gone = append(gone, slots[:int64(len(slots))-most]...)
	}
	return gone, nil
}

// old returns the slots that were seen long ago, by queue. A lease has taken its job out of the
// queue.
func (a *slotAudit) old(now time.Time) (map[string][]wire.HeldSlot, error) {
	seen, all := map[seenSlot]time.Time{}, map[string][]wire.HeldSlot{}
	err := a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		this := seenSlot{ledger.ID(h.Stream, h.Offset), len(h.Fires)}
		since, known := a.seen[this]
		if !known {
			since = now
		}
		if seen[this] = since; now.Sub(since) >= slotAuditAfter {
			all[wire.QueuePrefix+h.Queue] = append(all[wire.QueuePrefix+h.Queue], *h)
		}
		return true
	})
	a.seen = seen
	if err != nil || len(all) == 0 {
		return nil, err
	}
	leased, err := a.entries.LeasedSlots()
	for queue, slots := range all {
		all[queue] = slices.DeleteFunc(slots, func(h wire.HeldSlot) bool {
			return leased[wire.Slot{Stream: h.Stream, Offset: h.Offset, JIDTag: h.JID}]
		})
	}
	return all, err
}

// messages asks how many messages the queues have. The function that it returns answers -1 if the
// broker has not counted them, and 0 if there is no such queue. It is nil if the broker does not
// answer.
func (a *slotAudit) messages(ctx context.Context) func(queue string) int64 {
	ctx, cancel := context.WithTimeout(ctx, slotAuditPause)
	defer cancel()
	queues, err := a.queues(ctx)
	if err != nil {
		return nil
	}
	counts := map[string]int64{}
	for _, q := range queues {
		counts[q.Name] = -1
		if q.Counted && (q.State == "" || q.State == "running" || q.State == "idle") {
			counts[q.Name] = q.Messages
		}
	}
	return func(queue string) int64 { return counts[queue] }
}
