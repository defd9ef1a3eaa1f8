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
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries} {
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

// TakeReady gives the queues that got an entry which may fire since it was last called, with the earliest such entry.
func (t *Entries) TakeReady() map[string]DueKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.ready
	t.ready = map[string]DueKey{}
	return taken
}

// noteReady has the leader look at an entry, once the batch is written.
func (t *Entries) noteReady(s *Stored) {
	sooner(t.fresh, s.Queue, DueKey{s.At, s.Stream, s.Offset})
}

// readyAll has the leader look at every queue from its beginning, also at those that this batch has the first entry of: what was held may fire.
func (t *Entries) readyAll() {
	for _, q := range slices.AppendSeq(t.Queues(), maps.Keys(t.fresh)) {
		t.fresh[q] = DueKey{}
	}
}

func (t *Entries) showReady(fresh map[string]DueKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q, k := range fresh {
		sooner(t.ready, q, k)
	}
}

func sooner(ready map[string]DueKey, queue string, k DueKey) {
	if old, ok := ready[queue]; !ok || k.Before(old) {
		ready[queue] = k
	}
}
