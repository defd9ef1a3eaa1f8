package scheduler

import (
	"cmp"
	"context"
	"maps"
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
	seen    map[seenSlot]sighting
	began   time.Time // the first look
	looks   int64
	gone    chan []wire.HeldSlot // to the loop
	between time.Duration        // from one look at the queues to the next
}

// seenSlot is a slot with so many fires: one that is fired again is seen for the first time.
type seenSlot struct {
	ledger.EntryID
	fires int
}

func seenOf(h *wire.HeldSlot) seenSlot { return seenSlot{ledger.ID(h.Stream, h.Offset), len(h.Fires)} }

// sighting is how long after the first look a slot was seen first, and in which look last.
type sighting struct {
	first time.Duration
	look  int64
}

func (a *slotAudit) isOld(s sighting, now time.Time) bool {
	return now.Sub(a.began)-s.first >= slotAuditAfter
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

// look returns the slots whose jobs are gone. It reads the slots of a queue only if the queue has
// too few messages: there may be very many slots.
func (a *slotAudit) look(ctx context.Context) (gone []wire.HeldSlot, err error) {
	now := time.Now()
	held, err := a.count(now)
	if err != nil || len(held) == 0 || a.queues == nil {
		return nil, err
	}
	first := a.messages(ctx)
	if first == nil {
		return nil, nil
	}
	maps.DeleteFunc(held, func(queue string, slots int) bool { return !fewer(first(queue), slots) })
	if len(held) == 0 || pause.For(ctx, a.between) != nil {
		return nil, nil
	}
	second := a.messages(ctx)
	if second == nil {
		return nil, nil
	}
	most := map[string]int64{}
	for queue, slots := range held {
		if messages := max(first(queue), second(queue)); fewer(messages, slots) {
			most[queue] = messages
		}
	}
	if len(most) == 0 {
		return nil, nil
	}
	return a.oldest(now, most)
}

// fewer reports whether a queue has fewer messages than slots. A negative number is unknown.
func fewer(messages int64, slots int) bool { return messages >= 0 && messages < int64(slots) }

// count returns how many slots were seen long ago, by queue, and notes which are seen now.
func (a *slotAudit) count(now time.Time) (map[string]int, error) {
	if a.seen == nil {
		a.seen, a.began = map[seenSlot]sighting{}, now
	}
	a.looks++
	old := map[string]int{}
	err := a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		this := seenOf(h)
		s, known := a.seen[this]
		if !known {
			s.first = now.Sub(a.began)
		}
		s.look = a.looks
		if a.seen[this] = s; a.isOld(s, now) {
			old[wire.QueuePrefix+h.Queue]++
		}
		return true
	})
	maps.DeleteFunc(a.seen, func(_ seenSlot, s sighting) bool { return s.look != a.looks })
	return old, err
}

// oldest returns the slots of some queues that were seen long ago, without as many of the newest as
// the queue has messages. A lease has taken its job out of the queue.
func (a *slotAudit) oldest(now time.Time, messages map[string]int64) (gone []wire.HeldSlot, err error) {
	leased, err := a.entries.LeasedSlots()
	if err != nil {
		return nil, err
	}
	all := map[string][]wire.HeldSlot{}
	err = a.entries.Slots.Held(func(h *wire.HeldSlot) bool {
		queue := wire.QueuePrefix + h.Queue
		_, wanted := messages[queue]
		s, known := a.seen[seenOf(h)]
		if wanted && known && a.isOld(s, now) && !leased[wire.Slot{Stream: h.Stream, Offset: h.Offset, JIDTag: h.JID}] {
			all[queue] = append(all[queue], *h)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	for queue, slots := range all {
		slices.SortStableFunc(slots, func(a, b wire.HeldSlot) int { return cmp.Compare(a.At, b.At) })
		gone = append(gone, slots[:max(0, int64(len(slots))-messages[queue])]...)
	}
	return gone, nil
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
