package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// A broker may never answer a publish: RabbitMQ forgets some when the node of their queue or of the
// journal stops. A queue that does not answer stops only itself: nothing that is due is fired to it,
// but for one trial, and what it has open is set aside, which leaves the window to the others. A fire
// whose queue has answered later ones is passed over: it is set aside too, and its queue goes on.

const (
	silentAfter = 2 * time.Second  // without an answer, a queue is silent
	giveUpAfter = 30 * time.Second // without an answer, it is decided what became of a fire
	quietAfter  = time.Second      // without any answer, nothing is fired: the broker may have no majority
	watchEvery  = 500 * time.Millisecond
	maxSilent   = 4096 // while so many fires are set aside, nothing more is fired
)

// Why a fire is journaled as returned.
const (
	nack     = "nack"
	noAnswer = "no answer"
)

// silence watches for queues that do not answer what is fired to them.
type silence struct {
	clock    time.Duration // how long the core has run; a clock that is set does not move it
	looked   time.Duration
	answered time.Duration // when the newest answer came, or nothing was open but what is set aside
	journal  uint64        // the tag of the newest publish that the journal is known to have taken
	numbered uint64        // the same, of those with a number
	waits    uint64        // the tag of the newest publish without an answer that only what follows it can decide
	asked    uint64        // the same, when a record was sent behind it
	open     int           // fires that are set aside
	bytes    int
	overdue  []string        // queues with fires that are given up on
	gone     map[uint64]bool // the tags of publishes that were given up on, and not answered since
	hole     uint64          // the oldest tag of these and of what is set aside, 0 if there is none
}

// awaits reports whether it is a fire, which its queue must answer.
func (it *item) awaits() bool { return it.lane != nil && !it.buries }

// passedOver reports whether its queue has answered a later fire. A queue mostly answers in order. Where it does not, the earlier fire is
// set aside after silentAfter, until its answer comes.
func (it *item) passedOver() bool { return it.seq < it.lane.answered }

// quiet reports whether the broker has answered nothing for a while although something is open.
func (c *core) quiet() bool {
	return len(c.flight) > c.silence.open && c.silence.clock-c.silence.answered > quietAfter
}

// watchSilence finds the queues that do not answer, and those that answer again.
func (c *core) watchSilence() {
	s := &c.silence
	s.clock += c.passing
	if s.clock-s.looked < watchEvery {
		return
	}
	s.looked = s.clock
	oldest, overdue := map[*lane]time.Duration{}, map[string]bool{}
	newest := map[*lane]uint64{}
	s.waits = 0
	for tag, it := range c.flight {
		age := s.clock - it.sentAfter
		if it.lost != nil && age > it.lostAfter {
			if tag < s.journal {
				c.abandon(tag)
				it.lost()
				continue
			}
			s.waits = max(s.waits, tag)
		}
		if !it.awaits() {
			continue
		}
		newest[it.lane] = max(newest[it.lane], tag)
		if !it.passedOver() {
			oldest[it.lane] = max(oldest[it.lane], age)
		}
		if age > giveUpAfter {
			overdue[it.lane.queue] = true
		}
	}
	for _, ln := range c.lanes.all {
		silent := oldest[ln] > silentAfter
		switch {
		case ln.silent && !silent:
			ln.tried, ln.trying = false, false
			c.lanes.rouse(ln, time.Time{})
		case silent && !ln.tried && newest[ln] < s.numbered: // is it the queue that does not answer, or was that fire lost?
			ln.tried, ln.trying = true, true
			c.lanes.rouse(ln, time.Time{})
		}
		ln.silent, ln.aside = silent, 0
	}
	s.open, s.bytes, s.hole = 0, 0, 0
	for tag := range s.gone {
		s.behind(tag)
	}
	for tag, it := range c.flight {
		it.aside = it.awaits() && (it.lane.silent || it.passedOver() && s.clock-it.sentAfter > silentAfter)
		if it.aside {
			it.lane.aside++
			s.open++
			s.bytes += it.size
			if tag > s.numbered {
				s.waits = max(s.waits, tag)
			}
			s.behind(tag)
		}
	}
	for _, ln := range c.lanes.all {
		if ln.trial && ln.aside > 0 { // what it waited for may be set aside now
			c.lanes.rouse(ln, time.Time{})
		}
	}
	s.overdue = slices.Sorted(maps.Keys(overdue))
}

// takeOut takes an item out of the window, and out of what is set aside.
func (c *core) takeOut(tag uint64) *item {
	it := c.remove(tag)
	if it != nil && it.aside {
		it.lane.aside--
		c.silence.open--
		c.silence.bytes -= it.size
	}
	return it
}

// abandon takes an item out of the window that will have no answer, as far as can be told.
func (c *core) abandon(tag uint64) *item {
	c.silence.gone[tag] = true
	return c.takeOut(tag)
}

// askBehind sends a record behind the newest publish without an answer that only what follows it can decide, unless something else does: it
// shows whether the journal has a fire, whether its queue may get another job, and whether a record was lost.
func (c *core) askBehind(now time.Time) error {
	s := &c.silence
	if s.waits <= s.asked {
		return nil
	}
	s.asked = s.waits
	return c.record(now, wire.JournalRecord{Type: wire.TypeConfirmed, Through: c.watermark}, spot{}, nil)
}

// behind notes a publish without an answer.
func (s *silence) behind(tag uint64) {
	if s.hole == 0 || tag < s.hole {
		s.hole = tag
	}
}

// maxBehindHole is how many publishes may follow one that was never answered. The AMQP library keeps the answer to each of them, for as long as
// the channel lasts.
const maxBehindHole = 1 << 20

// errHole ends an epoch in order.
var errHole = fmt.Errorf("scheduler: the broker never answered a publish, and %d have followed: a new channel frees the memory that they take", maxBehindHole)

// worn reports whether so much has followed a publish without an answer that the epoch should end.
func (s *silence) worn() bool { return s.hole != 0 && s.journal > s.hole+maxBehindHole }

// giveUpOn decides what became of the fires that a queue has not answered for long: they arrived, or
// they are journaled as returned, and are fired again. The proof that they arrived holds for those that
// the journal has. A fire stays open until the view has read it, or a record with a higher number: until
// then the journal may be what does not answer.
func (c *core) giveUpOn(now time.Time, queue string, arrived bool) error {
	_, folded := c.entries.Progress()
	var tags []uint64
	for tag, it := range c.flight {
		if it.awaits() && it.lane.queue == queue && c.silence.clock-it.sentAfter > giveUpAfter && it.seq <= folded {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	for _, tag := range tags {
		it := c.abandon(tag)
		journaled, err := c.entries.InDoubt(c.epoch, it.seq)
		if err != nil {
			return err
		}
		if arrived && journaled && c.witnessTells(it) {
			c.accepted(it)
		} else if err := c.returned(now, it, noAnswer, journaled); err != nil {
			return err
		}
	}
	return nil
}

// witnessTells reports whether the witness that stands tells of a fire of this epoch.
func (c *core) witnessTells(it *item) bool {
	return wire.Through{Epoch: c.epoch, Through: it.seq}.Compare(c.entries.State().WitnessFrom) > 0
}

// silentQueues asks the broker about queues with fires that are given up on.
type silentQueues struct {
	asking   bool
	asked    time.Time
	verdicts chan silentVerdict
}

// silentVerdict is what was found out about a queue. Asking ends with one without a queue.
type silentVerdict struct {
	queue   string
	arrived bool
}

func newSilentQueues() silentQueues { return silentQueues{verdicts: make(chan silentVerdict)} }

// askAgainAfter is how long a queue that could not be asked about is left alone.
const askAgainAfter = 5 * time.Second

// ask finds out, beside the leader's loop, what became of the fires that queues have not answered. A
// queue that the broker cannot say anything about now is asked about again later.
func (q *silentQueues) ask(l *leadership) {
	queues := l.core.silence.overdue
	if len(queues) == 0 || q.asking || time.Since(q.asked) < askAgainAfter {
		return
	}
	q.asking, q.asked = true, time.Now()
	witness := l.s.entries.State().Witness
	l.beside(func(ctx context.Context) {
		known := l.answering(ctx, queues)
		p := l.s.readProof(ctx, l.witness.alone(ctx))
		v, err := l.witness.wait(ctx, witness) // last: it must tell of all that the core gives up on
		for _, queue := range known {
			if err == nil {
				q.tell(ctx, silentVerdict{queue, v == stands && p.of(queue)})
			}
		}
		q.tell(ctx, silentVerdict{})
	})
}

func (q *silentQueues) tell(ctx context.Context, v silentVerdict) {
	select {
	case q.verdicts <- v:
	case <-ctx.Done():
	}
}

// answering returns those of some queues of which the broker says how they are.
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

// answers reports whether the broker says in time how a queue is: there, missing, or away. A queue on
// a node that is frozen lets the question wait.
func (l *leadership) answers(ctx context.Context, queue string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	_, _, err := l.conn.QueueDepth(ctx, wire.QueuePrefix+queue)
	var refusal *broker.QueueError
	return err == nil || errors.As(err, &refusal)
}

// silentVerdict hands what was found out to the core.
func (l *leadership) silentVerdict(v silentVerdict) error {
	if v.queue == "" {
		l.silent.asking = false
		return nil
	}
	return l.core.giveUpOn(time.Now(), v.queue, v.arrived)
}
