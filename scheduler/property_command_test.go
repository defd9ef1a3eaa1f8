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

// send has the leader carry out a command, if it can be.
func (w *world) send(t *rapid.T, s *modelSidecar, what string, p place, offset int64) {
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: what, Stream: p.stream, JID: w.appended[p].jid, Offset: &offset}
	body, err := json.Marshal(cmd)
	require.NoError(t, err)
	if _, err := wire.ParseCommand(body); err != nil {
		return // not for this stream
	}
	w.asked[p] = w.asked[p] || what == wire.CommandDelete || what == wire.CommandKill
	if s.entries.IsHeld(p.stream, offset) {
		w.broker.unsafe[p] = "somebody asked for it while it was held"
	}
	undos := w.undos[p]
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		if r.Status == wire.StatusDone && what == wire.CommandDelete && w.undos[p] == undos {
			if _, before := w.deleted[p]; !before {
				w.deleted[p] = w.copiesOf(p)
			}
		}
	}))
}

// endHold is an operator who decides what becomes of what is held. Of what is released nobody knows whether it had been done.
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
				w.broker.unsafe[p] = "it was released"
				w.asked[p] = w.asked[p] || discard
				delete(w.deleted, p)
			}
		}
	}
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("h%d", w.commands), Command: wire.CommandRelease}
	if discard {
		cmd.Command = wire.CommandDiscard
	}
	require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
}
