package scheduler

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

func (w *world) places() []place {
	return slices.SortedFunc(mapsKeys(w.appended), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.stream, b.stream), cmp.Compare(a.generation, b.generation), cmp.Compare(a.offset, b.offset))
	})
}

func (w *world) command(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(w.appended) == 0 {
		return
	}
	p := rapid.SampledFrom(w.places()).Draw(t, "entry")
	if rapid.Bool().Draw(t, "a pending one") {
		if at, e, _ := w.pending(t, s); e != nil {
			p = at
		}
	}
	w.commandOn(t, s, p)
}

func (w *world) commandOn(t *rapid.T, s *modelSidecar, p place) {
	if p.generation != w.broker.streams[p.stream].generation {
		return
	}
	offset := p.offset
	found, err := s.entries.Find(p.stream, w.appended[p].jid)
	require.NoError(t, err)
	for _, e := range found {
		if w.broker.place(p.stream, e.Offset) == p {
			offset = e.Offset
		}
	}
	what := rapid.SampledFrom([]string{wire.CommandDelete, wire.CommandTrigger, wire.CommandRetry, wire.CommandKill}).Draw(t, "command")
	w.send(t, s, what, p, offset)
}

// send has the leader execute a command, if possible.
func (w *world) send(t *rapid.T, s *modelSidecar, what string, p place, offset int64) {
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: what, Stream: p.stream, JID: w.appended[p].jid, Offset: &offset}
	body, err := json.Marshal(cmd)
	require.NoError(t, err)
	if _, err := wire.ParseCommand(body); err != nil {
		return // not for this stream
	}
	w.asked[p] = w.asked[p] || what == wire.CommandDelete || what == wire.CommandKill
	w.sent = append(w.sent, sentCommand{cmd, p, w.undos[p]})
	w.give(t, s, w.sent[len(w.sent)-1])
}

// sentCommand is a command about one entry.
type sentCommand struct {
	wire.Command
	about place
	undos int // how often the entry had been requested back by then
}

// repeat sends a command again, under the same id, as a client without an answer may.
func (w *world) repeat(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(w.sent) == 0 {
		return
	}
	cmd := rapid.SampledFrom(w.sent).Draw(t, "again")
	if w.appended[cmd.about] != nil && cmd.about.generation == w.broker.streams[cmd.Stream].generation {
		w.give(t, s, cmd)
	}
}

func (w *world) give(t *rapid.T, s *modelSidecar, cmd sentCommand) {
	p := cmd.about
	if s.entries.IsHeld(cmd.Stream, *cmd.Offset) {
		w.broker.unsafe[p] = "it was requested while it was held"
	}
	undos, coming, epoch := w.undos[p], w.comesBack(s, p), s.core.ledger.Epoch()
	require.NoError(t, s.core.command(w.now, cmd.Command, func(r wire.Reply) {
		if epoch < w.broker.newest && r.Status != wire.StatusDone {
			return // it may answer with a state from before the next epoch
		}
		if what := w.endedBy(cmd, r); what != "" && w.undos[p] == undos && !coming {
			if _, before := w.ended[p]; !before {
				w.ended[p] = end{what, w.copiesOf(p)}
			}
		}
	}))
}

// end is the fate of an entry by an answer to a client. The entry must never fire after that.
type end struct {
	what   string
	copies int // that there were by then
}

// endedBy returns how an entry ended, by the answer to a command about it, or "" if the answer does
// not say.
func (w *world) endedBy(cmd sentCommand, r wire.Reply) string {
	what := ""
	switch h := r.Happened; {
	case r.Status == wire.StatusDone && cmd.undos == w.undos[cmd.about]: // otherwise it may have been executed before that
		what = map[string]string{wire.CommandDelete: wire.TypeDeleted, wire.CommandKill: wire.TypeKilled}[cmd.Command.Command]
	case r.Status == wire.StatusNotFound && h != nil && w.broker.place(cmd.Stream, h.Offset) == cmd.about:
		what = map[string]string{wire.TypeDeleted: wire.TypeDeleted, wire.TypeKilled: wire.TypeKilled, wire.OpBuried: wire.TypeKilled}[h.What]
	}
	return what
}

// mayComeBack notes that an entry was requested back.
func (w *world) mayComeBack(p place) {
	delete(w.ended, p)
	w.undos[p]++
}

// comesBack reports whether an undo may still restore an entry that an answer calls deleted.
func (w *world) comesBack(s *modelSidecar, p place) bool {
	if w.unanswered[p] > 0 {
		return true
	}
	op, known := s.entries.Operation(w.undoing[p])
	return w.undoing[p] != "" && (!known || op.State == wire.OperationRunning)
}

// endHold has an operator release or discard what is held. Whether a released entry had been done
// is unknown.
func (w *world) endHold(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || len(s.entries.State().Held) == 0 {
		return
	}
	discard := rapid.Bool().Draw(t, "discard")
	for p, e := range w.appended {
		if p.generation != w.broker.streams[p.stream].generation && !w.broker.repeated[p] {
			continue
		}
		for _, f := range w.found(s, p.stream, e.jid) {
			if s.entries.IsHeld(f.Stream, f.Offset) {
				w.broker.unsafe[p] = released
				w.asked[p] = w.asked[p] || discard
				delete(w.ended, p)
			}
		}
	}
	w.commands++
	w.disk.lag = -1 // a release is awaited: low water does not linger
	cmd := wire.Command{ID: fmt.Sprintf("h%d", w.commands), Command: wire.CommandRelease}
	if discard {
		cmd.Command = wire.CommandDiscard
	}
	require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
}
