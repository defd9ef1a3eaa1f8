package ledger

import (
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Port is where a ledger publishes. Publish does not wait for the confirm.
type Port interface {
	Publish(m wire.Message) (tag uint64, err error)
}

// View is what reads the journal back.
type View interface {
	// Progress returns the epoch that leads, and the newest of its numbers that was folded.
	Progress() (epoch, folded int64)
	// Lacks reports whether the journal has newer numbers of an epoch, and not this one.
	Lacks(epoch, seq int64) bool
}

// Config is what a ledger needs at its start.
type Config struct {
	Port     Port
	View     View
	Suspects map[EntryID]int // see Suspects
	// Unanswered are the tags of what was published through Port before, and has no answer.
	Unanswered map[uint64]bool
	Room       func() bool         // whether another bound leaves room
	Took       func(time.Duration) // gets how long the broker took to confirm
}

// Ledger keeps account of what a leader publishes in one epoch.
type Ledger struct {
	cfg    Config
	epoch  int64
	now    time.Time     // of the newest step
	passed time.Duration // before it

	numbers
	window
	answers
	continuations
	busy    map[EntryID]*Publish // what was acted upon, until the record of that was folded
	folding []*Publish           // what has a number and is not given up, in the order in which it will be folded
	refused []*Publish           // records that are published again
	again   time.Time            // when
}

// New makes a ledger. Its epoch is not known yet.
func New(cfg Config) *Ledger {
	if cfg.Suspects == nil {
		cfg.Suspects = map[EntryID]int{}
	}
	return &Ledger{cfg: cfg, epoch: -1, window: newWindow(), answers: newAnswers(cfg.Unanswered), busy: map[EntryID]*Publish{}}
}

// Begin gives the ledger the number of its epoch.
func (l *Ledger) Begin(epoch int64) { l.epoch = epoch }

// Epoch returns the number of the epoch, -1 if it has none yet.
func (l *Ledger) Epoch() int64 { return l.epoch }

// Now returns the time of the newest step.
func (l *Ledger) Now() time.Time { return l.now }

// MaxSleep bounds how long a leader sleeps between two steps.
const MaxSleep = time.Second

// setBack is by how much the time must go back for the clock to have been set. Less is what
// goroutines overtake each other by.
const setBack = time.Second

// Tick begins a step. It returns by how much the clock was set back, 0 if it was not: nothing waits
// longer for that. What is due is due by the clock, and not touched. A clock that was set forward
// only ends waits early.
func (l *Ledger) Tick(now time.Time) (back time.Duration) {
	back = l.now.Sub(now)
	l.now, l.passed = now, min(max(0, -back), MaxSleep)
	if back < setBack {
		return 0
	}
	l.again = l.again.Add(-back)
	return back
}

// Passed returns how much time passed before the newest step, of what the leader could have slept.
func (l *Ledger) Passed() time.Duration { return l.passed }

// Room reports whether anything may be published now.
func (l *Ledger) Room() bool { return l.room() && l.cfg.Room() }

// Send publishes. The entry that a numbered publish is about is busy until its record was folded.
func (l *Ledger) Send(p *Publish) error {
	p.sent, p.sentAfter = l.now, l.clock
	if l.Drained() {
		l.answered = l.clock
	}
	seq := int64(0)
	if !p.Plain {
		seq = l.seq + 1
	}
	m := p.Build(seq, l.watermark)
	l.sayAbove(m)
	tag, err := l.cfg.Port.Publish(m)
	if err != nil {
		return err
	}
	if !p.Plain {
		l.seq = seq
		p.seq, p.Size = seq, len(m.Body)
		if p.Entry.Stream != "" {
			l.busy[p.Entry] = p
		}
		if p.Lost == nil {
			l.folding = append(l.folding, p)
		}
	}
	l.add(tag, p)
	return nil
}

// Append publishes a record without a number, and calls confirmed when the broker has it.
func (l *Ledger) Append(stream string, r wire.JournalRecord, confirmed func()) error {
	return l.Send(&Publish{Plain: true, Confirmed: confirmed, Build: func(seq, confirmed int64) wire.Message { return r.Append(stream, seq, confirmed) }})
}

// Record publishes a record to the journal.
func (l *Ledger) Record(now time.Time, r wire.JournalRecord, about EntryID) error {
	return l.Send(l.NewRecord(now, r, about))
}

// NewRecord returns a record of the journal that is not sent yet.
func (l *Ledger) NewRecord(now time.Time, r wire.JournalRecord, about EntryID) *Publish {
	r.At, r.Epoch = wire.Seconds(now), l.epoch
	return &Publish{Entry: about, Build: func(seq, confirmed int64) wire.Message { return r.Append(wire.Journal, seq, confirmed) }}
}

// TakeBack journals that what a publish did is void. Its entry is free once that was folded. Its
// number is open until then: a view that had the confirm, and not this record, would take what the
// publish did for done.
func (l *Ledger) TakeBack(now time.Time, p *Publish, r wire.JournalRecord) error {
	p.void = l.NewRecord(now, r, EntryID{})
	p.void.Confirmed = func() { p.acked = true }
	return l.Send(p.void)
}

// Known returns what the epoch knows to be confirmed; nil if it has not begun.
func (l *Ledger) Known() *wire.Confirmed {
	if l.epoch < 0 {
		return nil
	}
	return &wire.Confirmed{Epoch: l.epoch, Through: l.watermark, Above: slices.Clone(l.above)}
}
