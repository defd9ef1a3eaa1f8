package scheduler

import (
	"fmt"
	"maps"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// pauseAsked is what was asked of a queue, and answered.
type pauseAsked struct {
	asked    int // how often
	answered int // the newest of those that was
	paused   bool
}

// pause pauses a queue, or has it go on.
func (w *world) pause(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	queue := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "queue")
	p := w.pauses[queue]
	if p == nil {
		p = &pauseAsked{}
		w.pauses[queue] = p
	}
	p.asked++
	mine := p.asked
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Command: wire.CommandPause, Queue: queue}
	if rapid.Bool().Draw(t, "resume") {
		cmd.Command = wire.CommandResume
	}
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		require.Equal(w.t, wire.StatusDone, r.Status)
		require.Greater(w.t, mine, p.answered, "an earlier one is answered later")
		p.answered, p.paused = mine, cmd.Command == wire.CommandPause
	}))
}

// checkPauses makes sure that what was answered last stands, and that all sidecars know the same.
func (w *world) checkPauses(s *modelSidecar) {
	paused := s.entries.Paused()
	for _, other := range w.sidecars {
		require.True(w.t, maps.Equal(paused, other.entries.Paused()), "%s and %s know different queues to be paused", s.name, other.name)
	}
	if w.journalLost {
		return // they stood there
	}
	for queue, p := range w.pauses {
		if _, is := paused[queue]; p.answered == p.asked {
			require.Equal(w.t, p.paused, is, "what was answered last of queue %s does not stand", queue)
		}
	}
}
