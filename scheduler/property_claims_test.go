package scheduler

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// Workers in the model. They run jobs that hold a slot, and ask whether they may where the client
// contract says so. A worker may die, and then the broker gives its job to another, if it still has
// it.

// atWork is what became of a copy at the workers.
type atWork struct {
	begun   bool // a worker had it
	running bool
	dropped bool // the leader said so, and a worker has acknowledged it
}

// copiesThat returns the copies of which something is so.
func (w *world) copiesThat(is func(*copyOf) bool) (all []*copyOf) {
	for _, c := range w.broker.copies {
		if is(c) {
			all = append(all, c)
		}
	}
	return all
}

func runs(c *copyOf) bool { return c.running }

// work has a worker take a job.
func (w *world) work(t *rapid.T) {
	if all := w.copiesThat(w.waits); len(all) > 0 {
		w.begin(rapid.SampledFrom(all).Draw(t, "taken"))
	}
}

// waits reports whether a queue has a job for a worker.
func (w *world) waits(c *copyOf) bool {
	return c.headers.Slot != "" && !c.gone && !c.running && !c.dropped && !w.limited.ended[c.headers.Slot]
}

// begin has a worker run a job, or ask whether it may.
func (w *world) begin(c *copyOf) {
	if !c.headers.Claim && !c.begun && c.headers.Op == wire.OpFired {
		c.begun, c.running = true, true
		return
	}
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	c.begun = true
	cmd := wire.Command{Command: wire.CommandClaim, Slot: c.headers.Slot, Process: fmt.Sprintf("w%d", len(w.broker.copies))}
	require.NoError(w.t, s.core.command(w.now, cmd, func(r wire.Reply) { w.claimed(c, r.Claim) }))
}

// claimed takes in the answer to a worker. It comes too late if the broker has given the job to
// another.
func (w *world) claimed(c *copyOf, answer string) {
	if answer == "" || c.running || c.dropped {
		return
	}
	if answer == wire.ClaimDrop {
		c.dropped = true
		return
	}
	for _, other := range w.broker.copies {
		sure := other.headers.Claim || !w.broker.unsafeTags[c.headers.JIDTag]
		if other.running && sure && holderOf(other) == holderOf(c) && !w.slotsForgotten() && !c.late && !other.late {
			require.Failf(w.t, "two copies of a job run at once", "%+v and %+v", other.headers, c.headers)
		}
	}
	c.running = true
}

// claimOpen has workers claim what the broker has not confirmed, and the leader read the claims
// before the confirms.
func (w *world) claimOpen(s *modelSidecar) {
	for _, a := range s.conn.answers {
		if a.copy != nil && w.waits(a.copy) {
			w.begin(a.copy)
		}
	}
	for s == w.leader() && len(s.conn.out) > 0 {
		w.broker.process(s.conn, w.now)
	}
	require.NoError(w.t, s.readAll())
	if s == w.leader() {
		w.step(s)
	}
}

// takeAll has workers take all jobs, as the next leader fires them again.
func (w *world) takeAll(t *rapid.T) {
	w.elect(t)
	for range 12 {
		w.round()
		w.now = w.now.Add(time.Second)
		w.beginAll()
	}
}

// beginAll has workers begin with all jobs that wait.
func (w *world) beginAll() {
	for _, c := range w.copiesThat(w.waits) {
		w.begin(c)
	}
}

// killWorker has a worker die. Its job is lost if the broker has lost it meanwhile.
func (w *world) killWorker(t *rapid.T) {
	if all := w.copiesThat(runs); len(all) > 0 {
		rapid.SampledFrom(all).Draw(t, "dies").running = false
	}
}

// ran reports whether a job has reached a worker that keeps it, or still can.
func (w *world) ran(c *copyOf) bool {
	if c.headers.Slot != "" && w.limited.ended[c.headers.Slot] {
		return true
	}
	return !c.gone && !c.dropped
}
