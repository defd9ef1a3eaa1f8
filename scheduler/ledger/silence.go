package ledger

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Unanswered returns the tags of everything that has no answer.
func (l *Ledger) Unanswered() map[uint64]bool {
	all := maps.Clone(l.gone)
	for tag := range l.open {
		all[tag] = true
	}
	return all
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
