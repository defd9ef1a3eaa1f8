package scheduler

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Two leaders at the same time: the lock has passed on, and the previous holder acts until it
// learns that.

// hold is what a node without a majority does: a classic queue of its own accepts fires, and
// streams wait for the other nodes. Nothing is confirmed.
func (b *modelBroker) hold(c *modelConn, next sent) {
	m := next.message
	has := next.copy != nil // since the node last had no majority
	if d, ok := wire.DispatchOf(m.Headers); ok && !has && m.Exchange == wire.ExchangeFire && b.takes(m.Key) {
		b.excuseRefire(&d, next.read)
		next.copy = b.deliver(d, m)
	}
	c.held = append(c.held, next)
}

// takes reports whether a queue accepts a job without the other nodes.
func (b *modelBroker) takes(queue string) bool {
	return queue != quorum && !b.cut && !b.full[queue] && !b.missing[queue]
}

// heal joins a connection's node with the others again. They accept what it held.
func (c *modelConn) heal() { c.out, c.held, c.cut = append(c.held, c.out...), nil, false }

// excuseLate notes that a leader fired an entry that its successor has buried, which it could not
// know.
func (b *modelBroker) excuseLate(fired *wire.Dispatch) {
	for at := b.newest; at < int64(b.streams[wire.Journal].end()); at++ {
		d, ok := wire.DispatchOf(b.streams[wire.Journal].get(at).Headers)
		if ok && d.Burial() && b.place(d.Stream, d.Offset) == b.place(fired.Stream, fired.Offset) {
			b.unsafeTags[d.JIDTag] = true
		}
	}
}

// excuseBurial notes that a leader, which had read so far, buried an entry that another has fired,
// which it could not know.
func (b *modelBroker) excuseBurial(m wire.Message, read int64) {
	d, _ := wire.DispatchOf(m.Headers)
	for _, c := range b.copies {
		if c.headers.Epoch != d.Epoch && (c.record < 0 || c.record >= read) && b.place(c.headers.Stream, c.headers.Offset) == b.place(d.Stream, d.Offset) {
			b.unsafeTags[d.JIDTag] = true
		}
	}
}

// noteBarrier notes a barrier of a leader that had been followed.
func (s *modelStream) noteBarrier(j *wire.JournalRecord, offset int64) {
	for at := s.base; at < int(offset); at++ {
		b, err := wire.ParseJournal(s.get(int64(at)).Body)
		if err == nil && b.Type == wire.TypeBarrier && b.Epoch > j.Epoch {
			s.late = append(s.late, span{at, int(offset)})
			return
		}
	}
}

// watchLease notes what a leader sends after it was followed, although leases are kept.
func (b *modelBroker) watchLease(m wire.Message) {
	d, ok := wire.DispatchOf(m.Headers)
	if ok && b.leases && d.Epoch < b.led {
		b.broken = append(b.broken, fmt.Sprintf("epoch %d fired %s@%d when epoch %d led", d.Epoch, d.Stream, d.Offset, b.led))
	}
}

// forgetEpochs finds the newest epoch after the journal's end was lost.
func (b *modelBroker) forgetEpochs() {
	b.newest, b.led = -1, -1
	for _, r := range b.streams[wire.Journal].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && r.UserID == millrace && j.Type == wire.TypeOpened {
			b.newest = r.Offset
		}
	}
}

// ping has a ping of the sidecar come back, if the broker can deliver it.
func (s *modelSidecar) ping() {
	if s.broker.conn == s.conn && !s.conn.cut {
		s.lease.Back(s.lease.Send())
	}
}

// stillHolds reports whether a ping comes back.
func (s *modelSidecar) stillHolds() bool {
	return !s.broker.leases || s.broker.conn == s.conn && !s.conn.cut
}

// mayAct reports whether the sidecar's lease lets it act as the leader.
func (s *modelSidecar) mayAct() bool { return !s.broker.leases || s.lease.Fresh() }

// remember keeps what the next epoch of this process can use.
func (s *modelSidecar) remember() {
	s.known = s.core.confirmedNow()
	if s.core.ledger.Epoch() >= 0 {
		s.unsaid, s.knownBy = true, s.core.setup.identity
	}
}

// sayLastWords journals that the sidecar's last epoch has ended, and the confirms that it knows.
func (s *modelSidecar) sayLastWords(now time.Time) {
	if !s.unsaid || s.known == nil || s.entries.State().Journals != s.journals {
		return
	}
	s.unsaid = false
	for _, a := range s.acked {
		s.broker.say(a.fire)
	}
	s.broker.append(wire.Journal, millrace, lastWords(now, s.known, s.knownBy).Append(wire.Journal, 0, 0))
}
