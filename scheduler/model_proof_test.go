package scheduler

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// check returns what a leader finds out immediately about the witness in the journal.
func (s *modelSidecar) check(now time.Time) verdict {
	s.known0, s.decideAt = s.entries.State().Witness, now.Add(watchLinks)
	s.broker.blind[s.core.ledger.Epoch()] = s.known0 == "" || s.broker.silent
	switch {
	case s.known0 == "":
		return gone
	case s.broker.silent:
		return undecided
	case s.known0 != s.broker.renew():
		return gone
	case s.broker.cluster:
		return undecided
	}
	return stands
}

// decide does what a leader does about a verdict that it could not give when it began. It waits for
// a broker that is silent.
func (s *modelSidecar) decide(now time.Time) {
	b := s.broker
	if now.Before(s.decideAt) || b.silent && now.Before(s.decideAt.Add(decideWithin)) {
		return
	}
	b.linkSeen = b.links
	b.blind[s.core.ledger.Epoch()] = s.known0 == "" || b.silent
	v, p := gone, s.core.reconciler.proof
	if s.known0 == b.renew() {
		v = stands
	}
	if p.unread {
		p = s.proof()
	}
	s.core.reconciler.decided(v, p)
}

// decideOverdue does what a leader does about queues that do not answer.
func (s *modelSidecar) decideOverdue(now time.Time) error {
	s.broker.linkSeen = s.broker.links
	for _, queue := range s.core.silence.overdue {
		arrived := s.entries.State().Witness == s.broker.renew() && s.proof().of(queue)
		if err := s.core.silence.giveUpOn(now, queue, arrived); err != nil {
			return err
		}
	}
	return nil
}

// renew returns what identifies the broker's run, as far as it reports its links.
func (b *modelBroker) renew() string {
	if b.silent {
		return ""
	}
	if b.witness == "" {
		b.runs++
		b.witness = fmt.Sprint("run-", b.runs)
	}
	return fmt.Sprint(b.witness, " nodes=", b.nodes, " links=", b.linkSeen)
}

const (
	quorum   = "c" // the model's quorum queue
	refusing = "b" // the one that may refuse, by its policy
)

// proof returns what the broker's API reports about its queues.
func (s *modelSidecar) proof() proof {
	if s.broker.silent {
		return proof{unread: true}
	}
	p := proof{alone: !s.broker.cluster, known: map[string]bool{wire.QueuePrefix + quorum: false}}
	for _, queue := range []string{"a", "b", "q"} {
		p.known[wire.QueuePrefix+queue] = !s.refuses(queue)
	}
	return p
}

// checkDelivered requires that a fire that is settled as delivered has reached its queue. It may
// have been misrouted, or its queue may have died alone. Those are settled otherwise, or are stated
// exceptions.
func (b *modelBroker) checkDelivered(fire wire.Through) {
	for _, c := range b.copies {
		if c.headers.Epoch != fire.Epoch || c.headers.Seq != fire.Through || c.journal != b.streams[wire.Journal].generation {
			continue
		}
		if p := b.place(c.headers.Stream, c.headers.Offset); c.gone && !c.bounced && b.gone[p] == "" {
			b.broken = append(b.broken, fmt.Sprintf("%v was settled as delivered, and its copy is gone", p))
		}
		return
	}
	for _, r := range b.streams[wire.Journal].records {
		d, ok := wire.DispatchOf(r.Headers)
		if ok && d.Epoch == fire.Epoch && d.Seq == fire.Through && !d.Burial() && !b.everCut {
			b.broken = append(b.broken, fmt.Sprintf("%s@%d was settled as delivered, and no queue has it", d.Stream, d.Offset))
		}
	}
}

// say notes that the journal's next record has the confirm of a fire.
func (b *modelBroker) say(fire wire.Through) {
	if _, known := b.known[fire]; !known {
		b.known[fire] = int64(b.streams[wire.Journal].end())
	}
}

// isKnown reports whether the part of the journal that a leader has read has the confirm of a fire.
func (b *modelBroker) isKnown(fire wire.Through, read int64) bool {
	at, known := b.known[fire]
	return known && at < read
}
