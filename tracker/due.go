package tracker

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// DueKey orders the entries of a queue by when they are due. The zero value is before all.
type DueKey struct {
	At     time.Time
	Stream string
	Offset int64
}

// Before tells whether k is due before o.
func (k DueKey) Before(o DueKey) bool {
	return bytes.Compare(k.bytes(), o.bytes()) < 0
}

func (k DueKey) bytes() []byte {
	if k.Stream == "" {
		return nil
	}
	return place{codes[k.Stream], k.Offset}.append(appendInt(nil, k.At.UnixMicro()))
}

// Queues lists the queues that have entries which may fire some day.
func (t *Entries) Queues() []string {
	all := map[string]bool{}
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.Gated} {
		for q := range t.ByQueue(stream) {
			all[q] = true
		}
	}
	for q := range t.counts.all(leases, countQueue) {
		all[q] = true
	}
	list := make([]string, 0, len(all))
	for q := range all {
		list = append(list, q)
	}
	slices.Sort(list)
	return list
}

// Ready is what became pending in a queue.
type Ready struct {
	First    DueKey // the earliest entry that may fire
	Unbound  bool   // the queue was not bound for one of them when it was published
	Returned bool   // one of them is a copy: a fire found no queue
}

// TakeReady gives the queues that got an entry which may fire since it was last called.
func (t *Entries) TakeReady() map[string]Ready {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.ready
	t.ready = map[string]Ready{}
	return taken
}

// noteReady has the leader look at an entry, once the batch is written.
func (t *Entries) noteReady(s *Stored) {
	gated := s.Stream == wire.Gated
	sooner(t.fresh, s.Queue, Ready{DueKey{s.At, s.Stream, s.Offset}, gated, gated && s.IsCopy()})
}

// readyAll has the leader look at every queue from its beginning, also at those that this batch has the first entry of: what was held may fire.
func (t *Entries) readyAll() {
	for _, q := range slices.AppendSeq(t.Queues(), maps.Keys(t.fresh)) {
		t.fresh[q] = Ready{}
	}
}

func (t *Entries) showReady(fresh map[string]Ready) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q, r := range fresh {
		sooner(t.ready, q, r)
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
