package tracker

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A reader that learns that a record was folded then reads the store. So nothing is shown before it
// is committed.
func TestNothingIsShownBeforeCommit(t *testing.T) {
	o := newOne(t)
	h := newHistory()
	epoch := h.open(func(r *wire.JournalRecord) { r.Held = map[string]int64{wire.Retries: 5} })
	o.fold(h.of(wire.Journal, 0)...)
	h.all = nil
	at := h.entry(wire.ScheduledJobs, "a", 1)
	h.fire(wire.ScheduledJobs, at, "a")
	later := h.entry(wire.ScheduledJobs, "b", 2)
	h.plain(wire.JournalRecord{Type: wire.TypeOperation, Operation: &wire.Operation{ID: "op", Action: wire.CommandDelete, Stream: wire.Retries, State: wire.OperationRunning}})
	h.plain(wire.JournalRecord{Type: wire.TypeReleased})
	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		for i := range h.all {
			if err := o.Fold(tx, &h.all[i]); err != nil {
				return err
			}
		}
		if err := o.Commit(tx); err != nil {
			return err
		}
		_, folded := o.Progress()
		require.Zero(t, folded)
		require.Empty(t, o.TakeReady())
		require.True(t, o.IsHeld(wire.Retries, 5))
		require.Zero(t, o.State().Fired)
		require.Empty(t, o.Operations())
		require.EqualValues(t, 1, o.Total(wire.ScheduledJobs), "a new entry is counted before it can be read")
		return nil
	}))
	now, folded := o.Progress()
	require.Equal(t, []int64{epoch, 1}, []int64{now, folded})
	require.Equal(t, Ready{}, o.TakeReady()["b"], "the queue is read from its beginning")
	require.Empty(t, o.TakeReady())
	require.False(t, o.IsHeld(wire.Retries, 5))
	require.EqualValues(t, 1, o.State().Fired)
	require.Len(t, o.Operations(), 1)
	require.Equal(t, []string{fmt.Sprintf("%d:b", later)}, o.pending(wire.ScheduledJobs))
}

// The leader learns which of its numbers the journal does not have.
func TestSkippedNumbers(t *testing.T) {
	s := newState()
	s.opened(7, &wire.JournalRecord{})
	for _, seq := range []int64{1, 2, 5, 6, 9, 4} {
		s.numbered(7, seq)
	}
	var shown Shown
	shown.show(s.clone())
	for seq, lacks := range []bool{false, false, false, true, true, false, false, true, true, false, false} {
		require.Equal(t, lacks, shown.Lacks(7, int64(seq)), seq)
	}
	require.True(t, shown.Lacks(5, 1), "another epoch leads")
	s.Unread = true // it had a number, or several
	s.numbered(7, 11)
	shown.show(s.clone())
	require.False(t, shown.Lacks(7, 10))
	for seq := int64(13); len(s.Skipped) < maxSkipped || s.Skipped[0].First == 3; seq += 2 {
		s.numbered(7, seq)
	}
	require.Len(t, s.Skipped, maxSkipped)
	s.opened(9, &wire.JournalRecord{})
	require.Empty(t, s.Skipped)
}

// Bytes are counted like entries: new ones before they can be read, deleted ones until they are
// gone.
func TestBytesAreNeverUnderestimated(t *testing.T) {
	o := newOne(t)
	h := newHistory()
	h.open()
	at := h.entry(sched, "a", 1_000_000)
	o.fold(h.of(wire.Journal, 0)...)
	o.fold(h.of(sched, 0)...)
	large := int64(len(body(sched, "a", 1_000_000)))
	require.Equal(t, large, o.Bytes(sched))
	for _, due := range []int{1, 1_000_000} {
		h.all = nil
		at = h.replace(sched, at, "a", due)
		require.NoError(t, o.store.Update(func(tx *view.Tx) error {
			if err := o.Fold(tx, &h.all[0]); err != nil {
				return err
			}
			if err := o.Commit(tx); err != nil {
				return err
			}
			require.Equal(t, large, o.Bytes(sched))
			return nil
		}))
		require.EqualValues(t, len(body(sched, "a", due)), o.Bytes(sched))
	}
}

// The same, with a leader that reads during the fold.
func TestShownStateIsCommitted(t *testing.T) {
	o := newOne(t)
	h := newHistory()
	h.open()
	const n = 300
	for i := range n {
		h.fire(wire.ScheduledJobs, h.entry(wire.ScheduledJobs, fmt.Sprintf("a%d", i), 1), fmt.Sprintf("a%d", i))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, key := range o.TakeReady() {
				if s, err := o.Get(key.First.Stream, key.First.Offset); err != nil || s == nil {
					ended <- fmt.Errorf("%v is ready, but cannot be read: %w", key, err)
					return
				}
			}
			_, folded := o.Progress()
			if folded == 0 {
				continue
			}
			offset := folded - 1 + 1 // behind the barrier
			s, err := o.Get(wire.ScheduledJobs, offset)
			if err == nil && s != nil {
				var pending bool
				if pending, err = o.Pending(s); pending {
					err = fmt.Errorf("entry %d is pending, but its fire was shown", offset)
				}
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	entries, journal := h.of(wire.ScheduledJobs, 0), h.of(wire.Journal, 0)
	for len(entries) > 0 {
		k := min(10, len(entries))
		o.fold(entries[:k]...)
		entries = entries[k:]
		k = min(10, len(journal))
		o.fold(journal[:k]...)
		journal = journal[k:]
	}
	stop()
	require.NoError(t, <-ended)
}

// used returns the CPU time of this process so far. It hardly depends on the load of the machine.
func used(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The fold of a fire takes no longer after many fires than at the beginning.
func TestFoldTimeStaysConstant(t *testing.T) {
	o := newOneWith(t, 64<<20)
	h := newHistory()
	h.open()
	o.inOrder(h)
	const parts = 10
	size := 2000
	if slow {
		size = 500
	}
	took := make([]time.Duration, parts)
	for part := range parts {
		h.all = nil
		for range size {
			h.fire(wire.ScheduledJobs, h.seq, "a")
			h.through = max(0, h.seq-100)
		}
		begun := used(t)
		for i := 0; i < size; i += 500 {
			o.fold(h.all[i : i+500]...)
		}
		took[part] = used(t) - begun
	}
	first, last := took[0], took[parts-1]
	for i := range parts / 2 {
		first, last = min(first, took[i]), min(last, took[parts/2+i])
	}
	require.Less(t, last, 3*first, "%v", took)
}

// A search stops when it has found as many entries as are counted, so counts must not be too low.
func TestCountsAreNeverUnderestimated(t *testing.T) {
	o := newOne(t)
	h := newHistory()
	h.open()
	at := h.entry(wire.ScheduledJobs, "a", 1)
	o.fold(h.of(wire.Journal, 0)...)
	o.fold(h.of(wire.ScheduledJobs, 0)...)
	h.all = nil
	h.fire(wire.ScheduledJobs, at, "a")
	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		require.NoError(t, o.Fold(tx, &h.all[0]))
		require.NoError(t, o.Commit(tx))
		require.EqualValues(t, 1, o.Total(wire.ScheduledJobs), "the entry can still be read")
		return nil
	}))
	require.Zero(t, o.Total(wire.ScheduledJobs))
	require.Empty(t, o.ByQueue(wire.ScheduledJobs))
}
