package tracker

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// keys lists the known keys as "key=jid", the oldest first.
func (o *one) keys() []string {
	list := []string{}
	require.NoError(o.t, o.EachEnqueued(func(e wire.Enqueued) bool {
		list = append(list, e.Key+"="+e.JID)
		return true
	}))
	return list
}

// enqueue appends an entry that was enqueued under a key. The key is not journaled yet.
func (h *history) enqueue(jid, key string, at int) wire.Announcement {
	a := wire.Announcement{What: wire.OpEnqueued, Stream: sched, JIDTag: wire.JIDTag(jid), Command: "c-" + key, Key: key, Sum: "sum", JID: jid}
	a.Offset = h.append(sched, millrace, a.Headers(h.epoch), body(sched, jid, at))
	return a
}

// enqueued journals that a job was enqueued under a key.
func (h *history) enqueued(a wire.Announcement, at float64) {
	r := a.Record()
	r.At, r.Enqueued = at, &wire.Enqueued{Key: a.Key, Sum: a.Sum, JID: a.JID, At: at}
	h.record(r)
}

const day = float64(wire.EnqueuedFor / time.Second)

// The entry alone creates the job. Its key is announced until it is journaled, in either order of
// reading. The entry has everything that the next leader needs to journal the key.
func TestEnqueuedKeyAwaitsJournal(t *testing.T) {
	h := newHistory()
	h.open()
	a := h.enqueue("a", "order 1", 50)
	o := newOne(t).inOrder(h)
	for range 2 {
		all, err := o.Announced()
		require.NoError(t, err)
		require.Equal(t, []wire.Announcement{a}, all)
		require.Equal(t, []string{"1:a"}, o.pending(sched))
		require.Empty(t, o.keys(), "only the journal defines keys")
		o.restart()
	}

	h.enqueued(a, 40)
	for _, first := range []string{sched, wire.Journal} {
		o := newOne(t)
		r := o.read(h, true)
		r.next(first, 100)
		r.finish()
		all, err := o.Announced()
		require.NoError(t, err)
		require.Empty(t, all, first)
		require.Zero(t, o.table(tableAnnounced), first)
		require.Equal(t, []string{"1:a"}, o.pending(sched), first)
		e, err := o.Enqueued("order 1", time.Unix(40, 0))
		require.NoError(t, err)
		require.Equal(t, &wire.Enqueued{Key: "order 1", Sum: "sum", JID: "a", At: 40}, e, first)
		done, err := o.CarriedOut("c-order 1")
		require.NoError(t, err)
		require.True(t, done, first)
	}
}

// Only the current leader, as Millrace's own user, enqueues under a key. The entry of a client has
// no key, and that of a fenced leader is void.
func TestKeyOfOthersIsIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		user    string
		behind  int64 // how many epochs ago its leader led
		pending []string
		void    int64
	}{
		"the leader":    {user: millrace, pending: []string{"2:a"}},
		"a client":      {user: client, pending: []string{"2:a"}},
		"a late leader": {user: millrace, behind: 1, pending: []string{}, void: 1},
		"a late client": {user: client, behind: 1, pending: []string{"2:a"}},
	} {
		h := newHistory()
		epochs := []int64{h.open(), h.open()}
		headers := wire.Announcement{What: wire.OpEnqueued, Key: "k", Sum: "s"}.Headers(epochs[1-c.behind])
		h.append(sched, c.user, headers, body(sched, "a", 1))
		o := newOne(t).inOrder(h)
		require.Equal(t, c.pending, o.pending(sched), name)
		require.Equal(t, c.void, o.State().Void[sched], name)
		all, err := o.Announced()
		require.NoError(t, err)
		require.Equal(t, c.user == millrace && c.behind == 0, len(all) > 0, name)
	}
}

// The newest job of a key counts, for one day. The kept keys do not depend on the read order or on
// the process.
func TestKeysAreKeptForADay(t *testing.T) {
	records := []wire.Enqueued{
		{Key: "old", JID: "a", At: 100},
		{Key: "again", JID: "b", At: 200},
		{Key: "again", JID: "c", At: 300},
		{Key: "edge", JID: "d", At: 1000},
		{Key: "new", JID: "e", At: 1000 + day},
		{Key: "", JID: "f", At: 500 + day},
	}
	for _, order := range [][]int{{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {2, 1, 3, 5, 4, 0}, {4, 0, 3, 1, 2, 5}} {
		h := newHistory()
		h.open()
		for _, i := range order {
			h.record(wire.JournalRecord{Type: wire.OpEnqueued, At: records[i].At, Enqueued: &records[i]})
		}
		o := newOne(t).inOrder(h)
		for range 2 {
			require.Equal(t, []string{"edge=d", "new=e"}, o.keys(), "%v: keys that are a day older than the newest are forgotten", order)
			o.restart()
		}
		require.Equal(t, 4, o.table(tableEnqueued), "%v: each key has two rows, one of them by age", order)
		for at, known := range map[float64]bool{1000: true, 1000 + day: true, 1001 + day: false} {
			e, err := o.Enqueued("edge", time.UnixMicro(int64(at*1e6)))
			require.NoError(t, err)
			require.Equal(t, known, e != nil, "asked at %v", at)
		}
		e, err := o.Enqueued("unknown", time.Unix(0, 0))
		require.NoError(t, err)
		require.Nil(t, e)
	}
}

// Keys of the same day are all kept. Of each key the newest record is kept, even if an older one is
// read after it.
func TestNewestJobOfKeyCounts(t *testing.T) {
	first, second := wire.Enqueued{Key: "k", JID: "a", At: 10}, wire.Enqueued{Key: "k", JID: "b", At: 20}
	other := wire.Enqueued{Key: "l", JID: "c", At: 15}
	for _, order := range [][]wire.Enqueued{{first, second, other}, {second, first, other}, {other, second, second, first}} {
		h := newHistory()
		h.open()
		for i := range order {
			h.record(wire.JournalRecord{Type: wire.OpEnqueued, Enqueued: &order[i]})
		}
		require.Equal(t, []string{"l=c", "k=b"}, newOne(t).inOrder(h).keys())
	}
}

// Keys below low water are carried over. A view that begins to read there has the same keys as a
// view that read everything.
func TestCarriedOverKeysAreComplete(t *testing.T) {
	h := newHistory()
	h.open()
	a, b := wire.Enqueued{Key: "a", Sum: "x", JID: "1", At: 10}, wire.Enqueued{Key: "b", Sum: "y", JID: "2", At: 20}
	h.record(wire.JournalRecord{Type: wire.OpEnqueued, Enqueued: &a})
	h.record(wire.JournalRecord{Type: wire.OpEnqueued, Enqueued: &b})
	carried := h.record(wire.JournalRecord{Type: wire.TypeState, Keys: []wire.Enqueued{a, b}})
	all := newOne(t).inOrder(h)
	late := newOne(t)
	late.fold(h.of(wire.Journal, 0)[carried:]...)
	require.Equal(t, []string{"a=1", "b=2"}, all.keys())
	require.Equal(t, all.keys(), late.keys())
	for _, o := range []*one{all, late} {
		stopped := 0
		require.NoError(t, o.EachEnqueued(func(wire.Enqueued) bool {
			stopped++
			return false
		}))
		require.Equal(t, 1, stopped)
	}
}

// Keys of a lost journal are forgotten, as in a view that is built from the new journal.
func TestLostJournalForgetsKeys(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.OpEnqueued, Enqueued: &wire.Enqueued{Key: "k", JID: "a", At: 10}})
	o := newOne(t).inOrder(h)
	require.Equal(t, []string{"k=a"}, o.keys())
	o.lose(wire.Journal)
	require.Empty(t, o.keys())
	require.Zero(t, o.table(tableEnqueued))
}

// A damaged key does not count as unused, because the same job would be enqueued twice.
func TestDamagedKeyIsReported(t *testing.T) {
	h := newHistory()
	h.open()
	keys := []wire.Enqueued{{Key: "k", JID: "a", At: 10}, {Key: "k", JID: "b", At: 20}, {Key: "l", JID: "c", At: 30 + day}}
	h.record(wire.JournalRecord{Type: wire.OpEnqueued, Enqueued: &keys[0]})
	o := newOne(t).inOrder(h)
	require.Equal(t, 2, o.scribble(tableEnqueued))
	_, err := o.Enqueued("k", time.Unix(10, 0))
	require.ErrorContains(t, err, "damaged")
	require.ErrorContains(t, o.EachEnqueued(func(wire.Enqueued) bool { return true }), "damaged")
	for _, r := range []wire.JournalRecord{
		{Type: wire.OpEnqueued, Enqueued: &keys[1]},                     // the fold reads the key itself
		{Type: wire.OpEnqueued, Enqueued: &keys[2]},                     // the fold reads the key that is too old now
		{Type: wire.TypeState, Keys: slices.Clone(keys[1:])},            // the same keys, carried over
		{Type: wire.TypeState, Keys: []wire.Enqueued{keys[2], keys[1]}}, // in any order
	} {
		at := h.record(r)
		_, err = o.try(h.of(wire.Journal, 0)[at])
		require.ErrorContains(t, err, "damaged")
	}
}
