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

// When an entry may fire that was changed: at the times that were asked for and not answered, and
// at the one that was answered last.

// ask notes that an entry may be due at a time from now on; answered is to be called once that is
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

// mayFire tells whether an entry that fires now is due by what was asked for.
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
	if c.deed.Op != wire.OpFired && c.deed.Op != wire.OpRefired || c.late {
		return
	}
	p := w.placeOf(c)
	here := place{c.deed.Stream, w.broker.streams[c.deed.Stream].generation, c.deed.Offset}
	if c.deed.Stream == wire.Gated || w.broker.repeated[p] || w.broker.repeated[here] || w.broker.repeated[w.broker.first(here)] {
		return // its time had come, whatever the clock says now
	}
	if e := w.appended[p]; e != nil && !e.dead && c.deed.Op == wire.OpFired {
		require.True(w.t, e.mayFire(c.at), "%s fires at %s, it may at %v", e.jid, c.at, e.dues)
	}
}

// pending draws an entry that a view takes for pending, with where it stands now.
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

// undoable draws an entry to which something happened last that can be undone.
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

// change asks for another time, queue or other arguments.
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

// regret has something done to an entry, and taken back a little later.
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

// undo takes back what was done to an entry last.
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
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		if r.Status == wire.StatusOK {
			answered()
		}
	}))
}

// askUnread notes that what is being done to an entry may be what is undone: then it may fire when
// it might have before that.
func (w *world) askUnread(s *modelSidecar, p place, e *appendedEntry) {
	found, err := s.entries.Find(p.stream, e.jid)
	require.NoError(w.t, err)
	for _, f := range found {
		if w.broker.place(p.stream, f.Offset) == p && s.core.ledger.Busy(ledger.ID(f.Stream, f.Offset)) != nil {
			e.ask(f.At)
		}
	}
}

// askUndone notes when an entry may fire once it is as it was before something happened to it.
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

// checkKilledOrFired makes sure that what fired is not dead as well: a kill that was undone takes
// the dead job with it.
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
			if c.deed.JIDTag == wire.JIDTag(e.jid) && !c.gone {
				fires++
			}
		}
		require.LessOrEqual(w.t, len(dead)+len(pending)+fires, 1, "%v (%s) is dead %d times, pending %d times, and has fired %d times",
			p, e.jid, len(dead), len(pending), fires)
	}
}

// isUnsafe tells whether a fire with a jid may have come twice, or not at all.
func (w *world) isUnsafe(jid string) bool {
	return w.broker.unsafeTags[wire.JIDTag(jid)] || w.sharedDoubt(jid)
}
