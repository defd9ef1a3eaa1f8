package scheduler

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// calm is the number of steps of half a second after which nothing is left that may end an epoch.
const calm = 60

// quiesce heals everything and lets the system come to rest.
func (w *world) quiesce() {
	w.broker.silent = false
	for _, s := range w.sidecars {
		if s.conn != nil {
			s.conn.heal()
		}
	}
	clear(w.broker.full)
	clear(w.broker.away)
	w.broker.halves = 0
	w.now = later(w.now, w.latest)
	calmed := false
	for i := range 400 {
		if w.leader() == nil {
			require.NoError(w.t, w.sidecars[i%2].elect(w.refuses))
		}
		w.now = w.now.Add(500 * time.Millisecond)
		cut := w.broker.cut || w.broker.cutGated // a leader that has nothing to do notices it within a minute
		w.round()
		w.endJobs()
		clear(w.broker.plainIn)
		if i%20 == 19 {
			w.auditSlots()
		}
		w.endHold(w.t)
		s := w.leader()
		if i == calm || cut {
			w.ends = nil
		}
		if i == 100 && s != nil && s.core.phase != phaseLeading { // as leadership.checkStuck does: it had been behind a journal that was lost
			s.disconnect()
			continue
		}
		if i >= 100 && i%10 == 0 && !calmed {
			calmed = w.calmPeriodic()
		}
		if i >= 150 && i%50 == 0 && s != nil { // after that a rebuilt view lacks nothing that the journal has forgotten
			require.NoError(w.t, s.core.beginCarry(0))
		}
		if i > 150 && calmed && s != nil && s.core.phase == phaseLeading && !s.core.periodics.busy() && s.core.ledger.Open()+s.core.ledger.AllBusy()+s.core.ledger.Refused() == 0 && s.core.carry.run == nil && s.core.allProven() && len(w.out()) == 0 {
			if doubts, err := s.entries.Doubts(); err == nil && len(doubts) == 0 {
				break
			}
		}
	}
	require.Empty(w.t, w.ends, "an epoch ends without a fault")
	for _, s := range w.sidecars {
		require.NoError(w.t, s.readAll())
		if len(s.recreated()) > 0 { // no leader could notice, and none has to: the view is rebuilt
			require.NoError(w.t, s.forget())
			require.NoError(w.t, s.readAll())
		}
	}
}

func (w *world) copiesOf(p place) (n int) {
	for _, c := range w.broker.copies {
		if w.placeOf(c) == p && w.ran(c) {
			n++
		}
	}
	return n
}

// timelyCopiesOf counts the copies except those of leaders that had been followed: nothing can
// recall those.
func (w *world) timelyCopiesOf(p place) (n int) {
	for _, c := range w.broker.copies {
		if w.placeOf(c) == p && !c.gone && !c.late {
			n++
		}
	}
	return n
}

// placeOf returns the entry that a copy was fired from. Its stream may have been created again
// since.
func (w *world) placeOf(c *copyOf) place {
	for g := w.broker.streams[c.headers.Stream].generation; g >= 0; g-- {
		p := w.broker.first(place{c.headers.Stream, g, c.headers.Offset})
		if e := w.appended[p]; e != nil && wire.JIDTag(e.jid) == c.headers.JIDTag {
			return p
		}
	}
	return place{c.headers.Stream, -1, c.headers.Offset}
}

func (w *world) check() {
	s := w.leader()
	require.NotNil(w.t, s, "no sidecar leads")
	require.Equal(w.t, phaseLeading, s.core.phase)
	doubts, err := s.entries.Doubts()
	require.NoError(w.t, err)
	for _, d := range doubts {
		require.Equal(w.t, s.core.ledger.Epoch(), d.Epoch, "a leader has not settled the doubts of an earlier epoch: %v", d.ID)
	}
	w.checkPeriodic(s)
	w.checkSlots(s)
	w.checkUnique()
	w.checkGoverned(s)
	w.checkCopies(s)
	w.checkKilledOrFired(s)
	w.checkOperations(s)
	w.checkPauses(s)
	w.checkKeys(s)
	require.LessOrEqual(w.t, s.entries.Total(wire.DeadJobs), int64(deadMax), "too many dead jobs are kept")
	missing, err := s.entries.Announced()
	require.NoError(w.t, err)
	require.Empty(w.t, missing, "the journal does not have every change")
	w.checkViews()
}

// released says why a job may come twice: an operator released what was held.
const released = "it was released"

// checkCopies counts what became of each job.
func (w *world) checkCopies(s *modelSidecar) {
	require.Empty(w.t, w.broker.broken)
	byJID := map[string]int{}
	for p, e := range w.appended {
		n := w.copiesOf(p)
		byJID[e.jid] += n
		// Two leaders may have entered a misrouted job again, and one of the two entries was ended.
		// If the journal was lost, the job may also be pending where it was before it came back.
		if end, ended := w.ended[p]; ended && !w.broker.repeated[p] && w.broker.unsafe[p] != released {
			require.LessOrEqual(w.t, w.timelyCopiesOf(p), end.copies, "%v was fired after the answer that it was %s", p, end.what)
		}
	}
	for p, e := range w.appended {
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		n := byJID[e.jid]
		_, doubled := w.broker.unsafe[p]
		if n > 1 && !doubled && !w.sharedDoubt(e.jid) {
			require.LessOrEqual(w.t, n, w.publishes(e.jid), "%v (%s) was fired %d times", p, e.jid, n)
		}
		if n == 0 && !w.mayBeGone(e.jid) {
			require.True(w.t, w.accounted(s, p, e), "%v (%s) is lost", p, e.jid)
		}
	}
}

// some reports whether a condition holds for one of the entries with a jid.
func (w *world) some(jid string, is func(place) bool) bool {
	for p, e := range w.appended {
		if e.jid == jid && is(p) {
			return true
		}
	}
	return false
}

// mayBeGone reports whether an entry with a jid may be lost. Others with the jid may have been
// treated as repetitions of it.
func (w *world) mayBeGone(jid string) bool {
	return w.some(jid, func(p place) bool { return w.broker.gone[p] != "" })
}

// askedFor reports whether a request may have deleted or killed an entry with a jid: if it was
// published twice, either of the two.
func (w *world) askedFor(jid string) bool {
	return w.some(jid, func(p place) bool { return w.asked[p] })
}

// publishes returns how often a jid may come: a repetition that came after the first had fired is a
// job of its own.
func (w *world) publishes(jid string) (n int) {
	for _, e := range w.appended {
		if e.jid == jid {
			n++
		}
	}
	return n
}

func (w *world) sharedDoubt(jid string) bool {
	return w.some(jid, func(p place) bool { return w.broker.unsafe[p] != "" })
}

// accounted reports whether an entry that was not fired is where it should be.
func (w *world) accounted(s *modelSidecar, p place, e *appendedEntry) bool {
	if w.ended[p].what == wire.TypeDeleted || w.filled(p) || w.unique.outdone[e.jid] {
		return true
	}
	pending, err := s.entries.Find(p.stream, e.jid)
	require.NoError(w.t, err)
	if e.dead && (len(pending) > 0 || w.broker.trimmed[wire.JIDTag(e.jid)]) {
		return true // a dead job waits for a user, unless there are too many
	}
	happened, err := s.entries.LastOutcome(p.stream, e.jid)
	require.NoError(w.t, err)
	if w.askedFor(e.jid) && w.some(e.jid, func(p place) bool { return w.broker.repeated[p] }) {
		again, err := s.entries.LastOutcome(wire.ScheduledJobs, e.jid) // where it was entered again
		require.NoError(w.t, err)
		if again != nil && again.What == wire.TypeDeleted {
			return true
		}
	}
	if w.askedFor(e.jid) {
		copied, err := s.entries.LastOutcome(wire.Gated, e.jid) // its copy, which stood for it
		require.NoError(w.t, err)
		if copied != nil && (copied.What == wire.TypeDeleted || w.isDead(s, e.jid)) {
			return true
		}
	}
	if happened == nil {
		return w.truncated && w.askedFor(e.jid)
	}
	switch happened.What {
	case wire.TypeDeleted: // requested, and unanswered, or one of many
		return true
	case wire.TypeChanged, wire.TypeUndone, wire.TypeKilled, wire.OpBuried:
		if e.dead {
			return false
		}
		if happened.What == wire.TypeChanged || happened.What == wire.TypeUndone {
			return len(pending) > 0 // not due yet
		}
		return w.isDead(s, e.jid)
	}
	return w.askedFor(e.jid) && w.arrived(e.jid) // it was killed, retried as a dead job, misrouted, and entered again
}

// arrived reports whether a queue got a job with a jid, from any entry.
func (w *world) arrived(jid string) bool {
	return slices.ContainsFunc(w.broker.copies, func(c *copyOf) bool { return c.headers.JIDTag == wire.JIDTag(jid) && !c.gone })
}

// isDead reports whether a job that was killed is among the dead jobs, or was.
func (w *world) isDead(s *modelSidecar, jid string) bool {
	dead, err := s.entries.Find(wire.DeadJobs, jid)
	require.NoError(w.t, err)
	gone, err := s.entries.LastOutcome(wire.DeadJobs, jid)
	require.NoError(w.t, err)
	return len(dead) > 0 || gone != nil || w.broker.trimmed[wire.JIDTag(jid)] || w.broker.streams[wire.DeadJobs].generation > 0
}

// checkViews compares the views with each other, and with a rebuilt one.
func (w *world) checkViews() {
	fresh, err := newModelSidecar(w.broker, "fresh")
	require.NoError(w.t, err)
	defer func() { _ = fresh.store.Close() }()
	require.NoError(w.t, fresh.readAll())
	state := fresh.entries.State()
	require.Empty(w.t, state.Gap(0), "a rebuilt view believes that the journal has a gap")
	tables := "elfgjwdcaxositGSUQV"
	if w.journalLost { // what users had requested stood there, and each view knows it as far as it had read
		tables = "elfgjwdcxsGQ"
	}
	if w.journalLost && w.recreated { // and what it had read there of a stream that was deleted stays
		tables = "elfgjcxsG"
	}
	// If another entry has replaced the one of a late fire, a view takes a refusal of that fire for
	// void or not, depending on which stream it reads first. Only what was done to the entry
	// differs.
	entriesOnly := w.truncated || w.broker.lateReturn
	want := w.dump(fresh.store, entriesOnly, tables)
	for _, s := range w.sidecars {
		require.Equal(w.t, want, w.dump(s.store, entriesOnly, tables), "the view of %s differs from a rebuilt one", s.name)
	}
}

// dump returns all that a fold wrote, or only what is about entries if the past is not fully known
// any more. What a stream that was deleted said of ends is known only to who had read it.
func (w *world) dump(store *view.Store, entriesOnly bool, tables string) map[string]string {
	all := map[string]string{}
	require.NoError(w.t, store.Scan([]byte{1}, []byte{255}, false, func(k, v []byte) bool {
		ofEnds := bytes.ContainsAny(k[:1], "EF") || bytes.HasPrefix(k, []byte("mF"))
		if (!entriesOnly || slices.Contains([]byte(tables), k[0])) && (!w.recreated || !ofEnds) {
			all[fmt.Sprintf("%q", k)] = fmt.Sprintf("%q", v)
		}
		return true
	}))
	return all
}
