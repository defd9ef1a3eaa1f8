package feed

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// kept is how many events are kept.
const kept = 5000

// Feed keeps the newest events.
type Feed struct {
	log   *slog.Logger // nil unless it has debug lines
	until atomic.Int64 // nanoseconds since 1970: so long a client watches

	tx      *view.Tx // the fold's own: the batch that it is at
	pending []Event  // its events, until it is written

	mu   sync.Mutex
	ring []Event // event n stands at n % kept
	next int64
}

// New returns a feed that keeps nothing yet. If the log has debug lines, it gets one for each
// event.
func New(log *slog.Logger) *Feed {
	f := &Feed{}
	if log.Enabled(context.Background(), slog.LevelDebug) {
		f.log = log
	}
	return f
}

// Keep makes the feed keep events until a time.
func (f *Feed) Keep(until time.Time) { f.until.Store(until.UnixNano()) }

// Next returns the number of the next event.
func (f *Feed) Next() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// Since returns the newest events from a number on, up to a limit, the oldest first. missed is the
// number of events between from and the first of them.
func (f *Feed) Since(from int64, most int) (events []Event, next, missed int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from > f.next { // of another run
		from = f.next
	}
	first := max(from, f.next-int64(len(f.ring)), f.next-int64(most))
	for n := first; n < f.next; n++ {
		events = append(events, f.ring[n%kept])
	}
	return events, f.next, first - from
}

// stale is how old a record may be and still happen now: a view that is built again reads what
// happened long ago.
const stale = time.Minute

// Observe appends the events of a folded record.
func (f *Feed) Observe(tx *view.Tx, r *wire.Record) {
	if r.Fault != "" {
		return
	}
	f.trace(r)
	until := f.until.Load()
	if until == 0 {
		return
	}
	now := time.Now()
	if now.UnixNano() > until || !r.Time.IsZero() && now.Sub(r.Time) > stale {
		return
	}
	if f.tx != tx { // the events of a batch that was never written are forgotten
		f.tx, f.pending = tx, f.pending[:0]
		tx.AfterCommit(f.show)
	}
	f.pending = eventsOf(f.pending, r)
}

// trace logs the events of jobs. Together with the leader's lines about its publishes, the lines of
// one jid are its history.
func (f *Feed) trace(r *wire.Record) {
	if f.log == nil {
		return
	}
	for _, e := range eventsOf(nil, r) {
		f.log.Debug("view: read", "jid", e.JID, "what", e.What, "class", e.Class, "queue", e.Queue, "error_class", e.ErrorClass, "actor", e.Actor,
			"record", fmt.Sprintf("%s@%d", r.Stream, r.Offset))
	}
}

func (f *Feed) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.pending {
		if len(f.ring) < kept {
			f.ring = append(f.ring, e)
		} else {
			f.ring[f.next%kept] = e
		}
		f.next++
	}
	f.tx, f.pending = nil, f.pending[:0]
}
