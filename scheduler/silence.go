package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A broker may never answer a publish: RabbitMQ forgets some when the node of their queue or of the
// journal stops. A queue that does not answer stops only itself. Nothing due is fired to it but one
// trial, and its unconfirmed fires are set aside, so that they take no room from others. A fire is
// passed over if its queue has answered later ones: it is set aside too, and its queue resumes.

// silence watches for queues that do not answer.
type silence struct {
	base
	queues  *dueQueues
	overdue []string // queues with fires so old that they are given up
}

// step notes which queues do not answer, and which answer again.
func (s *silence) step(now time.Time) error {
	unanswered, looked := s.ledger.Watch()
	if !looked {
		return s.ledger.AskBehind(now)
	}
	s.overdue = nil
	for _, q := range s.queues.all {
		u := unanswered[&q.Queue]
		if u.Overdue {
			s.overdue = append(s.overdue, q.name)
		}
		silent := u.Age > ledger.SilentAfter
		switch {
		case q.Silent && !silent:
			q.tried, q.trying = false, false
			s.queues.wakeAt(q, time.Time{})
		case silent && !q.tried && u.Followed: // the fire may be lost, and the queue may answer
			q.tried, q.trying = true, true
			s.queues.wakeAt(q, time.Time{})
		}
		q.Silent = silent
	}
	slices.Sort(s.overdue)
	s.ledger.SetAside()
	for _, q := range s.queues.all {
		if q.trial && q.Aside > 0 { // what it waited for may be set aside now
			s.queues.wakeAt(q, time.Time{})
		}
	}
	return s.ledger.AskBehind(now)
}

// errHole ends an epoch in order.
var errHole = fmt.Errorf("scheduler: the broker never answered a publish, and %d have followed: a new channel frees the memory that they take", ledger.MaxBehindHole)

// giveUpOn decides what became of the fires that a queue has not answered for long. Those that the
// journal has arrived, if the broker proves that. The others are journaled as returned, and are
// fired again.
func (s *silence) giveUpOn(now time.Time, queue string, arrived bool) error {
	_, folded := s.entries.Progress()
	for p := range s.ledger.GiveUp(&s.queues.of(queue).Queue, folded) {
		journaled, err := s.entries.InDoubt(s.ledger.Epoch(), p.Seq())
		if err != nil {
			return err
		}
		if arrived && journaled && s.witnessSpeaks(p) {
			s.ledger.Accept(p)
		} else if err := p.Returned(now, ledger.NoAnswer, journaled); err != nil {
			return err
		}
	}
	return nil
}

// witnessSpeaks reports whether the witness that stands speaks for a fire of this epoch.
func (s *silence) witnessSpeaks(p *ledger.Publish) bool {
	return wire.Through{Epoch: s.ledger.Epoch(), Through: p.Seq()}.Compare(s.entries.State().WitnessFrom) > 0
}

// silentQueues asks the broker about queues with fires that are given up.
type silentQueues struct {
	asking   bool
	asked    time.Time
	verdicts chan silentVerdict
}

// silentVerdict is what was found out about a queue. One without a queue ends the asking.
type silentVerdict struct {
	queue   string
	arrived bool
}

func newSilentQueues() silentQueues { return silentQueues{verdicts: make(chan silentVerdict)} }

// askAgainAfter is how long until it is asked again about queues.
const askAgainAfter = 5 * time.Second

// ask finds out, beside the loop, what became of the fires that queues have not answered. A queue
// about which the broker says nothing is asked about again later.
func (q *silentQueues) ask(l *leadership) {
	queues := l.core.silence.overdue
	if len(queues) == 0 || q.asking || time.Since(q.asked) < askAgainAfter {
		return
	}
	q.asking, q.asked = true, time.Now()
	witness := l.s.entries.State().Witness
	l.beside(func(ctx context.Context) {
		known := l.answering(ctx, queues)
		p := l.s.readProof(ctx, l.witness.alone(ctx), listQueuesWithin)
		v, err := l.witness.wait(ctx, witness) // last: it speaks for what is given up
		for _, queue := range known {
			if err == nil {
				q.send(ctx, silentVerdict{queue, v == stands && p.of(queue)})
			}
		}
		q.send(ctx, silentVerdict{})
	})
}

func (q *silentQueues) send(ctx context.Context, v silentVerdict) {
	select {
	case q.verdicts <- v:
	case <-ctx.Done():
	}
}

// answering returns the queues about which the broker says how they are.
func (l *leadership) answering(ctx context.Context, queues []string) []string {
	answers := make([]bool, len(queues))
	var g errgroup.Group
	g.SetLimit(bindAtOnce)
	for i, queue := range queues {
		g.Go(func() error {
			answers[i] = l.answers(ctx, queue)
			return nil
		})
	}
	_ = g.Wait() // each has its answer
	var known []string
	for i, queue := range queues {
		if answers[i] {
			known = append(known, queue)
		}
	}
	return known
}

// answers reports whether the broker says in time that a queue exists, is missing, or is away. A
// question about a queue on a frozen node waits.
func (l *leadership) answers(ctx context.Context, queue string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, _, err := l.conn.Queues().Depth(ctx, wire.QueuePrefix+queue)
	var refusal *broker.QueueError
	return err == nil || errors.As(err, &refusal)
}

// silentVerdict passes what was found out to the core.
func (l *leadership) silentVerdict(v silentVerdict) error {
	if v.queue == "" {
		l.silent.asking = false
		return nil
	}
	return l.core.silence.giveUpOn(time.Now(), v.queue, v.arrived)
}
