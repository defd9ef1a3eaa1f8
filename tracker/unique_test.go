package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// uniqueJob returns a unique job. All have the same key. That of u0 is free when it is delivered.
func uniqueJob(jid string) string {
	while := map[byte]string{'0': `"while":"waiting",`}[jid[1]]
	return fmt.Sprintf(`{"jid":%q,"class":"U","queue":"u","args":[],"gate":{"unique":{%s"key":"k"}}}`, jid, while)
}

// decides is a leader that decides about undecided entries, in any way.
func (a *author) decides() {
	var undecided []*Stored
	require.NoError(a.t, a.view.Unique.Undecided(0, func(offset int64) bool {
		s, err := a.view.Get(gated, offset)
		require.NoError(a.t, err)
		undecided = append(undecided, s)
		return true
	}))
	if len(undecided) == 0 {
		a.record(wire.JournalRecord{Type: wire.TypeDecided, At: float64(a.draw(9, "now")), Decisions: []wire.Decision{{Outcome: wire.UniqueFreed, Key: wire.UniqueKey("k")}}})
		return
	}
	s := undecided[a.draw(len(undecided), "which")]
	d := wire.Decision{Outcome: []string{wire.UniqueAdmitted, wire.UniqueAdmitted, wire.UniqueDuplicate, wire.UniqueRepeated}[a.draw(4, "outcome")],
		Offset: s.Offset, JID: s.tag(), First: 1, Due: int64(a.draw(3, "due")) * 1e6, Of: "other"}
	if other := a.pending(gated); other != nil && other.Unique != "" && !other.Undecided && d.Outcome != wire.UniqueRepeated && a.draw(2, "other") == 0 {
		d.Holder, d.HolderJID, d.Due = &other.Offset, other.tag(), d.Due+1
	}
	if until := int64(a.draw(9, "until")) * 1e6; until > 0 && d.Outcome == wire.UniqueAdmitted {
		d.Key, d.Until = s.Unique, until
	}
	a.record(wire.JournalRecord{Type: wire.TypeDecided, At: float64(a.draw(9, "now")), Decisions: []wire.Decision{d}})
}

// requireHolds checks that keys are held exactly by the entries and slots that may hold them, and
// that what is counted in memory is in the store.
func requireHolds(t require.TestingT, o *one) {
	want := map[string]bool{}
	require.NoError(t, o.store.Scan([]byte{tableEntry}, table.After([]byte{tableEntry}), false, func(key, value []byte) bool {
		s, err := decodeStored(entryIDOf(key[1:]), append([]byte(nil), value...))
		require.NoError(t, err)
		if s.holdsKey() {
			want[fmt.Sprintf("entry %s@%d %s", s.Stream, s.Offset, s.JID)] = true
		}
		return true
	}))
	require.NoError(t, o.Slots.Held(func(h *wire.HeldSlot) bool {
		if h.Unique != "" {
			want[fmt.Sprintf("slot %s@%d %s", h.Stream, h.Offset, h.JID)] = true
		}
		return true
	}))
	have, periods := map[string]bool{}, 0
	require.NoError(t, o.Unique.Each(func(h *KeyHold) bool {
		switch {
		case h.IsPeriod():
			periods++
		case h.Slot:
			have[fmt.Sprintf("slot %s@%d %s", h.Stream, h.Offset, h.JID)] = true
		default:
			have[fmt.Sprintf("entry %s@%d %s", h.Stream, h.Offset, h.JID)] = true
		}
		return true
	}))
	require.Equal(t, want, have)
	require.Equal(t, periods, o.table(tablePeriodEnd))
	memory := *o.Entries.fold.entries.keys
	again := &uniqueKeys{shown: &shownUnique{}}
	require.NoError(t, again.load(o.store))
	require.Equal(t, []int64{again.entries, again.unread, again.undecided}, []int64{memory.entries, memory.unread, memory.undecided})
	require.Equal(t, again.undecided, o.UndecidedJobs())
}

// For how long none is decided is counted from the last decision, or from when the first job came.
func TestUndecidedFor(t *testing.T) {
	var s shownUnique
	later := func() time.Time { return time.Now().Add(time.Hour) }
	require.Zero(t, s.UndecidedFor(later()))
	s.showDecided(2, nil)
	s.stillFrom.Store(1)
	s.showDecided(3, nil)
	require.Greater(t, s.UndecidedFor(later()), 24*time.Hour, "more jobs are no progress")
	require.Zero(t, s.UndecidedFor(time.Unix(0, 0)), "the clock was set")
	s.showDecided(2, []wire.Decision{{JID: "a"}})
	require.InDelta(t, time.Hour, s.UndecidedFor(later()), float64(time.Minute))
	s.showDecided(0, nil)
	require.Zero(t, s.UndecidedFor(later()))
}

func decided(decisions ...wire.Decision) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeDecided, At: 1, Decisions: decisions}
}

// uniqueStories are stories of unique jobs.
var uniqueStories = map[string]story{
	"unique, undecided": {func(h *history) {
		h.entry(gated, "u1", 1)
		h.open()
	}, outcome{}},
	"unique, admitted, and a duplicate": {func(h *history) {
		u, v := h.entry(gated, "u1", 1), h.entry(gated, "u2", 1)
		h.open()
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1"}, wire.Decision{Outcome: wire.UniqueDuplicate, Offset: v, JID: "u2", Of: "u1"}))
	}, outcome{due: []string{"u/jobs.gated:0"}}},
	"unique, replaced": {func(h *history) {
		u, v := h.entry(gated, "u1", 1), h.entry(gated, "u2", 1)
		h.open()
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1"}))
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: v, JID: "u2", Holder: &u, HolderJID: "u1", Key: wire.UniqueKey("k"), Until: 9e6}))
	}, outcome{due: []string{"u/jobs.gated:1"}}},
	"unique, put off, carried over": {func(h *history) {
		u, v := h.entry(gated, "u1", 1), h.entry(gated, "u2", 1)
		h.open()
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1", Due: 7e6}))
		h.record(decided(wire.Decision{Outcome: wire.UniqueDuplicate, Offset: v, JID: "u2", Of: "u1", Holder: &u, HolderJID: "u1", Due: 8e6}))
		h.replace(gated, u, "u1", 8)
	}, outcome{due: []string{"u/jobs.gated:3"}}},
	"unique, fired, ended": {func(h *history) {
		u := h.entry(gated, "u1", 1)
		h.open()
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1"}))
		h.confirmed(h.fire(gated, u, "u1"))
		h.end(wire.TypeEnded, h.slots[0])
	}, outcome{}},
	"unique, settled before it is read": {func(h *history) {
		u := h.entry(gated, "u1", 1)
		h.open()
		h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1"}))
		h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: gated, Offset: u, JID: "u1"})
	}, outcome{}},
}

func TestPeriodsEndInTheirOrder(t *testing.T) {
	h := newHistory()
	u, v := h.entry(gated, "u1", 1), h.entry(gated, "u2", 1)
	h.open()
	key := wire.UniqueKey("k")
	h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1", Key: key, Until: 5e6}))
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: gated, Offset: u, JID: "u1"})
	o := newOne(t).inOrder(h)
	holds, err := o.Unique.Holds(key.Hash())
	require.NoError(t, err)
	require.Equal(t, []*KeyHold{{Key: key, JID: "u1", Since: 1e6, Until: 5e6}}, holds)
	h.record(wire.JournalRecord{Type: wire.TypeState, At: 2, Periods: []wire.UniquePeriod{{Key: wire.UniqueKey("other"), JID: "x", Until: 9e6}, {Key: wire.UniqueKey("old"), JID: "y", Until: 1e6}}})
	later := decided(wire.Decision{Outcome: wire.UniqueDuplicate, Offset: v, JID: "u2", Of: "u1"})
	later.At = 6
	h.record(later)
	left := func() (all []string) {
		o = newOne(t).inOrder(h)
		require.NoError(t, o.Unique.Periods(func(h *KeyHold) bool {
			all = append(all, h.JID)
			return true
		}))
		return all
	}
	require.Equal(t, []string{"x"}, left())
	h.record(wire.JournalRecord{Type: wire.TypeLowWater, At: 9})
	require.Empty(t, left(), "a view that begins to read here does not know it")
	outcome, err := o.LastOutcome(gated, "u2")
	require.NoError(t, err)
	require.Equal(t, []any{wire.UniqueDuplicate, "u1"}, []any{outcome.What, outcome.Other})
}

func TestDecisionIsAwaited(t *testing.T) {
	h := newHistory()
	u := h.entry(gated, "u1", 1)
	h.open()
	o := newOne(t)
	one, stop := o.AwaitDecision("u1")
	defer stop()
	h.record(decided(wire.Decision{Outcome: wire.UniqueAdmitted, Offset: u, JID: "u1"}))
	o.inOrder(h)
	select {
	case d := <-one:
		require.Equal(t, wire.UniqueAdmitted, d.Outcome)
	case <-time.After(time.Second):
		require.Fail(t, "no decision")
	}
}
