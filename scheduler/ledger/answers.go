package ledger

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// A broker may never answer a publish: RabbitMQ forgets some when the node of their queue or of the
// journal stops. Where a queue does not answer, what it has open is set aside. A fire whose queue
// has answered later ones is passed over: it is set aside too.

// How long the broker may take to answer.
const (
	SilentAfter = 2 * time.Second  // after which a queue is silent
	GiveUpAfter = 30 * time.Second // after which it is decided what became of a fire
	QuietAfter  = time.Second      // after which nothing is fired, where nothing at all is answered
	watchEvery  = 500 * time.Millisecond
)

// Why what a publish did is void.
const (
	Nack     = "nack"
	NoAnswer = "no answer"
)

// answers is what is known of the broker's answers.
type answers struct {
	clock    time.Duration   // how long the epoch has run; a clock that is set does not move it
	watched  time.Duration   // when it was looked last what has no answer
	answered time.Duration   // when the newest answer came, or the window was drained
	journal  uint64          // the tag of the newest publish that the journal has
	numbered uint64          // the same, of those with a number
	waits    uint64          // the tag of the newest publish that only what follows it can decide
	asked    uint64          // the same, when a record was sent behind it
	gone     map[uint64]bool // the tags of what was given up on, and not answered since
	hole     uint64          // the oldest tag of these and of what is set aside, 0 if there is none
}

func newAnswers(gone map[uint64]bool) answers {
	a := answers{gone: map[uint64]bool{}}
	for tag := range gone {
		a.gone[tag] = true
		a.behind(tag)
	}
	return a
}

// Advance has the clock of the answers run.
func (a *answers) Advance(by time.Duration) { a.clock += by }

// Hole returns the tag of the oldest publish that was given up on or set aside, 0 if there is none.
func (a *answers) Hole() uint64 { return a.hole }

// MaxBehindHole is how many publishes may follow one that was never answered. The AMQP library
// keeps the answer to each of them as long as the channel lasts.
const MaxBehindHole = 1 << 20

// Worn reports whether so much has followed a publish without an answer that the epoch should end.
func (a *answers) Worn() bool { return a.hole != 0 && a.journal > a.hole+MaxBehindHole }

// Unanswered returns the tags of everything that has no answer.
func (l *Ledger) Unanswered() map[uint64]bool {
	all := maps.Clone(l.gone)
	for tag := range l.open {
		all[tag] = true
	}
	return all
}

// GivenUp returns how many publishes were given up on, and not answered since.
func (a *answers) GivenUp() int { return len(a.gone) }

// behind notes a publish without an answer.
func (a *answers) behind(tag uint64) {
	if a.hole == 0 || tag < a.hole {
		a.hole = tag
	}
}

// answer takes a publish out of the window that the broker has answered; nil if it was given up on.
func (l *Ledger) answer(tag uint64, ack bool) *Publish {
	l.answered = l.clock
	p := l.takeOut(tag)
	if p == nil {
		delete(l.gone, tag)
		return nil
	}
	if p.Queue != nil {
		p.Queue.answered = max(p.Queue.answered, p.seq)
	}
	if ack && p.seq > 0 {
		l.numbered = max(l.numbered, tag)
	}
	if ack && (p.seq > 0 || p.Lost != nil) && !p.Elsewhere {
		l.journal = max(l.journal, tag)
	}
	return p
}

// abandon takes a publish out of the window that will probably have no answer.
func (l *Ledger) abandon(tag uint64) *Publish {
	l.gone[tag] = true
	return l.takeOut(tag)
}

// ForgetPlain stops waiting for the answers to publishes without a number. The view must have read
// all of them.
func (l *Ledger) ForgetPlain() {
	for tag, p := range l.open {
		if p.Plain {
			l.abandon(tag)
		}
	}
}

// Quiet reports whether the broker has answered nothing for a while although something is open.
func (l *Ledger) Quiet() bool { return !l.Drained() && l.clock-l.answered > QuietAfter }

// Unanswered is what a queue has not answered.
type Unanswered struct {
	Age      time.Duration // of the oldest that is not passed over
	Followed bool          // the broker has taken a numbered publish behind all of it
	Overdue  bool          // one is so old that it is decided what became of it
}

// Watch has the clock of the answers run. From time to time it gives up the records that were lost,
// and returns what each queue has not answered; between, ok is false. SetAside is to follow.
func (l *Ledger) Watch() (all map[*Queue]Unanswered, ok bool) {
	l.Advance(l.passed)
	if l.clock-l.watched < watchEvery {
		return nil, false
	}
	l.watched, l.waits = l.clock, 0
	all = map[*Queue]Unanswered{}
	for tag, p := range l.open {
		age := l.clock - p.sentAfter
		if p.Lost != nil && age > p.LostAfter {
			if tag < l.journal {
				l.abandon(tag)
				p.Lost()
				continue
			}
			l.waits = max(l.waits, tag)
		}
		if p.Queue == nil {
			continue
		}
		u, known := all[p.Queue]
		u.Followed = tag < l.numbered && (u.Followed || !known)
		u.Overdue = u.Overdue || age > GiveUpAfter
		if !p.PassedOver() {
			u.Age = max(u.Age, age)
		}
		all[p.Queue] = u
	}
	return all, true
}

// SetAside has the window set aside what is open of silent queues, and what was passed over.
func (l *Ledger) SetAside() {
	l.aside, l.asideBytes, l.hole = 0, 0, 0
	for tag := range l.gone {
		l.behind(tag)
	}
	for _, p := range l.open {
		if p.Queue != nil {
			p.Queue.Aside = 0
		}
	}
	for tag, p := range l.open {
		p.aside = p.Queue != nil && (p.Queue.Silent || p.PassedOver() && l.clock-p.sentAfter > SilentAfter)
		if !p.aside {
			continue
		}
		p.Queue.Aside++
		l.aside++
		l.asideBytes += p.Size
		if tag > l.numbered {
			l.waits = max(l.waits, tag)
		}
		l.behind(tag)
	}
}

// AskBehind sends a record behind the newest publish that only what follows it can decide, unless
// something else was sent: it shows whether the journal has a fire, whether its queue may get
// another job, and whether a record was lost.
func (l *Ledger) AskBehind(now time.Time) error {
	if _, folded := l.cfg.View.Progress(); folded < l.seq && l.Drained() && l.clock-l.answered > QuietAfter {
		return l.Mark(now)
	}
	if l.waits <= l.asked {
		return nil
	}
	l.asked = l.waits
	return l.Mark(now)
}

// Mark publishes a record without news. It shows that the journal has what was sent before.
func (l *Ledger) Mark(now time.Time) error { return l.Record(now, l.Progress(), EntryID{}) }

// Progress returns a record without news: what is confirmed.
func (l *Ledger) Progress() wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeConfirmed, Through: l.watermark}
}

// GiveUp takes out of the window, one after the other, what a queue has not answered for long. The
// view must have folded it, or a record with a higher number: until then the journal may be what
// does not answer.
func (l *Ledger) GiveUp(q *Queue, folded int64) iter.Seq[*Publish] {
	var tags []uint64
	for tag, p := range l.open {
		if p.Queue == q && l.clock-p.sentAfter > GiveUpAfter && p.seq <= folded {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return func(yield func(*Publish) bool) {
		for _, tag := range tags {
			if !yield(l.abandon(tag)) {
				return
			}
		}
	}
}
