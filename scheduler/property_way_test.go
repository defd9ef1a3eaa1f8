package scheduler

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// cutWay deletes an exchange between jobs.fire and the queues, or a binding of jobs.bury.
func (w *world) cutWay(t *rapid.T) {
	switch rapid.IntRange(0, 5).Draw(t, "which way") {
	case 0, 1:
		w.broker.cut, w.broker.everCut = true, true
	case 2:
		w.broker.cutBury, w.broker.everCut = true, true
	case 3:
		w.broker.cutGated, w.broker.everCut, w.unsafeAlternate = true, true, true
		clear(w.broker.caught)
	}
}

// step moves the leader on. The leader may find that its fires do not arrive.
func (w *world) step(s *modelSidecar) {
	if s.ping(); !s.mayAct() {
		return
	}
	err := s.step(w.now)
	if endsBy(err) {
		w.ends = append(w.ends, err)
		w.dieInFlight(w.t, s)
		s.disconnect()
		return
	}
	require.NoError(w.t, err)
}

// allProven reports whether a leader knows that all its fires arrived.
func (c *core) allProven() bool {
	return !c.routing.out && c.routing.fired.jobs+c.routing.before.jobs == 0 && len(c.routing.burials) == 0
}

// found lists the pending entries of a stream with a jid, and those that stand for one of them:
// misrouted jobs that were entered again, and copies.
func (w *world) found(s *modelSidecar, stream, jid string) (all []*tracker.Stored) {
	for name := range map[string]bool{stream: true, wire.ScheduledJobs: true, wire.Gated: true} {
		found, err := s.entries.Find(name, jid)
		require.NoError(w.t, err)
		all = append(all, found...)
	}
	return all
}
