package scheduler

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// When a changed entry may fire: at the times that were requested and not answered, and at the one
// that was answered last.

// ask notes that an entry may be due at a time from now on. The test calls answered once that is
// answered.
func (e *appendedEntry) ask(due time.Time) (answered func()) {
	e.asked++
	mine := e.asked
	e.dues[mine] = due
	return func() {
		for n := range e.dues {
			if n < mine {
				delete(e.dues, n)
			}
		}
	}
}

// mayFire reports whether a request allows an entry to fire now.
func (e *appendedEntry) mayFire(now time.Time) bool {
	for _, due := range e.dues {
		if !now.Before(due) {
			return true
		}
	}
	return false
}

// fired checks every job that reaches a queue.
func (w *world) fired(c *copyOf) {
	w.tookSlot(c)
	w.uniqueDelivered(c)
	if c.headers.Op != wire.OpFired && c.headers.Op != wire.OpRefired || c.late {
		return
	}
	p := w.placeOf(c)
	here := place{c.headers.Stream, w.broker.streams[c.headers.Stream].generation, c.headers.Offset}
	if c.headers.Stream == wire.Gated || w.broker.repeated[p] || w.broker.repeated[here] || w.broker.repeated[w.broker.first(here)] {
		return // its time had come, even if the clock was set back since
	}
	if e := w.appended[p]; e != nil && !e.dead && c.headers.Op == wire.OpFired {
		require.True(w.t, e.mayFire(c.at), "%s fires at %s, it may at %v", e.jid, c.at, e.dues)
	}
}

// pending draws an entry that is pending in a view, with its current position.
func (w *world) pending(t *rapid.T, s *modelSidecar) (p place, e *appendedEntry, now *tracker.Stored) {
	var at []place
	var all []*tracker.Stored
	for _, p := range w.places() {
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		found, err := s.entries.Find(p.stream, w.appended[p].jid)
		require.NoError(t, err)
		for _, f := range found {
			if w.broker.place(p.stream, f.Offset) == p {
				at, all = append(at, p), append(all, f)
			}
		}
	}
	if len(at) == 0 {
		return p, nil, nil
	}
	i := rapid.IntRange(0, len(at)-1).Draw(t, "which")
	return at[i], w.appended[at[i]], all[i]
}

// undoable draws an entry whose last action can be undone.
func (w *world) undoable(t *rapid.T, s *modelSidecar) (p place, e *appendedEntry, h *wire.Happened) {
	var at []place
	var all []*wire.Happened
	for _, p := range w.places() {
		if p.generation != w.broker.streams[p.stream].generation {
			continue
		}
		h, err := s.entries.LastOutcome(p.stream, w.appended[p].jid)
		require.NoError(t, err)
		if h != nil && wire.Undoable(h.What) && w.broker.place(p.stream, h.Offset) == p { // else it is another entry with that jid
			at, all = append(at, p), append(all, h)
		}
	}
	if len(at) == 0 {
		return p, nil, nil
	}
	i := rapid.IntRange(0, len(at)-1).Draw(t, "which")
	return at[i], w.appended[at[i]], all[i]
}

// change requests another time, queue or other arguments.
func (w *world) change(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	p, e, now := w.pending(t, s)
	if e == nil {
		return
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandChange, Stream: p.stream, JID: e.jid}
	cmd.Offset = &now.Offset
	if rapid.Bool().Draw(t, "as it stood first") {
		cmd.Offset = &p.offset
	}
	answered := func() {}
	changes := map[string]any{"queue": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"), "args": []int{w.commands}}
	if !e.dead && rapid.IntRange(0, 3).Draw(t, "time") > 0 {
		due := w.now.Add(time.Duration(rapid.IntRange(-2, 8).Draw(t, "due")) * time.Second).Truncate(time.Second)
		changes["at"] = due.Unix()
		answered = e.ask(due)
	}
	var err error
	cmd.Changes, err = json.Marshal(changes)
	require.NoError(t, err)
	for range 1 + rapid.IntRange(0, 5).Draw(t, "repeated")/5 {
		require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
			if r.Status == wire.StatusOK {
				answered()
			}
		}))
	}
}

// regret has something done to an entry, and undoes it a little later.
func (w *world) regret(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	p, e, now := w.pending(t, s)
	if e == nil {
		return
	}
	w.send(t, s, rapid.SampledFrom([]string{wire.CommandDelete, wire.CommandKill}).Draw(t, "command"), p, now.Offset)
	for range rapid.IntRange(3, 6).Draw(t, "rounds") {
		w.round()
	}
	w.undo(t)
}

// undo undoes the last action on an entry.
func (w *world) undo(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	p, e, h := w.undoable(t, s)
	if e == nil {
		return
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandUndo, Stream: p.stream, JID: e.jid}
	w.mayComeBack(p)
	answered := w.askUndone(p, e, h)
	w.askUnread(s, p, e)
	// The command names a jid. The last action may be one under way, on another entry with that
	// jid.
	for q, twin := range w.appended {
		if q != p && q.stream == p.stream && q.generation == p.generation && twin.jid == e.jid && w.askUnread(s, q, twin) {
			w.mayComeBack(q)
		}
	}
	w.unanswered[p]++ // until then, an answer may say that the entry is deleted
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		w.unanswered[p]--
		if r.Status == wire.StatusOK {
			answered()
		}
	}))
}

// askUnread reports whether an action on an entry is under way, and notes that it may be the one
// that is undone: then the entry may fire when it might have before that.
func (w *world) askUnread(s *modelSidecar, p place, e *appendedEntry) (underWay bool) {
	found, err := s.entries.Find(p.stream, e.jid)
	require.NoError(w.t, err)
	for _, f := range found {
		if w.broker.place(p.stream, f.Offset) == p && s.core.ledger.Busy(ledger.ID(f.Stream, f.Offset)) != nil {
			e.ask(f.At)
			underWay = true
		}
	}
	return underWay
}

// askUndone notes when an entry may fire once an action on it is undone.
func (w *world) askUndone(p place, e *appendedEntry, h *wire.Happened) (answered func()) {
	record := w.broker.streams[wire.Journal].get(h.Record)
	if record == nil {
		return func() {}
	}
	j, err := wire.ParseJournal(record.Body)
	if err != nil || len(j.Entry) == 0 {
		return func() {}
	}
	was, err := wire.ParseEntry(p.stream, h.Offset, j.Entry)
	require.NoError(w.t, err)
	return e.ask(was.At)
}

// checkKilledOrFired requires that an entry that fired is not dead as well: the undo of a kill
// removes the dead job.
func (w *world) checkKilledOrFired(s *modelSidecar) {
	for p, e := range w.appended {
		if e.dead || p.generation != w.broker.streams[p.stream].generation || w.publishes(e.jid) > 1 || w.isUnsafe(e.jid) {
			continue
		}
		dead, err := s.entries.Find(wire.DeadJobs, e.jid)
		require.NoError(w.t, err)
		pending, err := s.entries.Find(p.stream, e.jid)
		require.NoError(w.t, err)
		fires := 0
		for _, c := range w.broker.copies {
			if c.headers.JIDTag == wire.JIDTag(e.jid) && !c.gone {
				fires++
			}
		}
		require.LessOrEqual(w.t, len(dead)+len(pending)+fires, 1, "%v (%s) is dead %d times, pending %d times, and has fired %d times",
			p, e.jid, len(dead), len(pending), fires)
	}
}

// isUnsafe reports whether a fire with a jid may have come twice, or not at all.
func (w *world) isUnsafe(jid string) bool {
	return w.broker.unsafeTags[wire.JIDTag(jid)] || w.sharedDoubt(jid)
}
