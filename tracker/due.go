package tracker

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// DueKey orders the entries of a queue by when they are due. The zero value is before all.
type DueKey struct {
	At     time.Time
	Stream string
	Offset int64
}

// Before reports whether k is due before o.
func (k DueKey) Before(o DueKey) bool {
	return bytes.Compare(k.bytes(), o.bytes()) < 0
}

func (k DueKey) bytes() []byte {
	if k.Stream == "" {
		return nil
	}
	return entryID{codes[k.Stream], k.Offset}.append(table.AppendInt(nil, k.At.UnixMicro()))
}

// Ready describes the entries of a queue that became pending.
type Ready struct {
	First    DueKey // the earliest entry that may fire
	Unbound  bool   // the queue was not bound for one of them when it was published
	Returned bool   // one of them is a copy: a fire found no queue
}

// arrivals are the entries that became pending in a batch. The leader sees them once it is written.
type arrivals struct {
	shown  *Shown
	counts *Counts
	ready  map[string]Ready
	copies []int64 // of jobs.gated
}

func (a *arrivals) reset() { a.ready, a.copies = map[string]Ready{}, nil }

// noteReady makes the leader look at an entry.
func (a *arrivals) noteReady(s *Stored) {
	gated := s.Stream == wire.Gated
	sooner(a.ready, s.Queue, Ready{DueKey{s.At, s.Stream, s.Offset}, gated, gated && s.IsCopy()})
}

// readyAll makes the leader look at every queue from its beginning, since what was held may fire.
// It includes the queues of which this batch has the first entry.
func (a *arrivals) readyAll() {
	for _, q := range slices.AppendSeq(a.counts.Queues(), maps.Keys(a.ready)) {
		a.ready[q] = Ready{}
	}
}

func (a *arrivals) noteCopy(s *Stored) { a.copies = append(a.copies, s.Offset) }

// announce shows the arrivals once the batch is written.
func (a *arrivals) announce(tx *view.Tx) {
	if ready := a.ready; len(ready) > 0 {
		a.ready = map[string]Ready{}
		tx.AfterCommit(func() { a.shown.showReady(ready) })
	}
	if copies := a.copies; len(copies) > 0 {
		a.copies = nil
		tx.AfterCommit(func() { a.shown.showCopies(copies) })
	}
}

func sooner(ready map[string]Ready, queue string, r Ready) {
	if old, ok := ready[queue]; ok {
		if old.First.Before(r.First) {
			r.First = old.First
		}
		r.Unbound, r.Returned = r.Unbound || old.Unbound, r.Returned || old.Returned
	}
	ready[queue] = r
}
