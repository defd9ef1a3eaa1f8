package scheduler

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// loseCopy loses a record of jobs.gated that the broker had confirmed, as RabbitMQ 3.10 does when
// the node stops that leads the stream.
func (b *modelBroker) loseCopy(offset int64) {
	r := b.streams[wire.Gated].get(offset)
	d, _ := wire.DispatchOf(r.Headers)
	here := place{wire.Gated, b.streams[wire.Gated].generation, offset}
	fire := wire.Through{Epoch: d.Epoch, Through: d.Seq}
	b.lostCopies[fire] = b.first(here)
	delete(b.origin, here)
	delete(b.jids, here)
	delete(b.back, fire)
	m := wire.UnroutedProbe()
	r.Headers, r.Body = m.Headers, m.Body
}

// forgetLostCopies notes what is lost because its leader ended before it could publish the copy
// again.
func (b *modelBroker) forgetLostCopies() {
	for _, p := range b.lostCopies {
		b.gone[p] = "jobs.gated lost its copy, and the leader that knew of it ended"
	}
	clear(b.lostCopies)
}

// loseCopies loses copies that no sidecar has read yet, and of which the leader knows or learns.
func (w *world) loseCopies(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading || s.conn != w.broker.conn {
		return
	}
	read := 0
	for _, one := range w.sidecars {
		read = max(read, one.at[wire.Gated])
	}
	gated := w.broker.streams[wire.Gated]
	for offset := int64(max(read, gated.base)); offset < int64(gated.end()); offset++ {
		r := gated.get(offset)
		d, ok := wire.DispatchOf(r.Headers)
		if ok && r.UserID == millrace && s.hears(d) && rapid.Bool().Draw(t, "lost") {
			w.broker.loseCopy(offset)
		}
	}
}

// hears reports whether a leader knows, or will, that a fire found no queue.
func (s *modelSidecar) hears(d wire.Dispatch) bool {
	if s.core.unrouted.waiting[dispatchOf(d)] != nil {
		return true
	}
	return slices.ContainsFunc(s.conn.bounced, func(m wire.Message) bool {
		b, _ := wire.DispatchOf(m.Headers)
		return dispatchOf(b) == dispatchOf(d)
	})
}

// bounce sends a fire or probe without a queue back to its leader, if that leads the epoch still.
func (c *modelConn) bounce(m wire.Message) {
	if core := c.leader.core; core != nil && wire.HeaderInt(m.Headers, wire.HeaderEpoch) == core.ledger.Epoch() {
		c.bounced = append(c.bounced, m)
	}
}

// takeBounced has a leader take in the next of them.
func (s *modelSidecar) takeBounced(most int) {
	n := min(most, len(s.conn.bounced))
	for _, m := range s.conn.bounced[:n] {
		s.core.unrouted.cameBack(m)
	}
	s.conn.bounced = s.conn.bounced[n:]
}

// leadOn begins another epoch with the same lock, as leadership does where the journal has lost a
// record.
func (s *modelSidecar) leadOn() {
	s.takeBounced(len(s.conn.bounced))
	s.remember()
	s.left, s.suspect = s.core.leftovers(), s.core.ledger.Suspects()
	s.later, s.asked, s.governs, s.altAsked, s.conn.arrived = nil, nil, nil, false, nil
	s.terms++
	s.begin()
}

// leadOn has the leader do that.
func (w *world) leadOn(*rapid.T) {
	if s := w.leader(); s != nil && s.conn == w.broker.conn && s.core.phase == phaseLeading {
		w.excuseRefusals()
		s.leadOn()
	}
}
