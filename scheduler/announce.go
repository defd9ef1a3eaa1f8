package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// announceEvery bounds how often the journal gets a record of what is confirmed. At a few hundred
// jobs a second the window drains after each.
const announceEvery = 100 * time.Millisecond

// announcer journals what is confirmed, if no header of a publish says it.
type announcer struct {
	base
	routing *routing
	passes  int       // how many numbers were closed when that was journaled last
	at      time.Time // when that was
}

// step journals what is confirmed from time to time.
func (a *announcer) step(now time.Time) (wake time.Time, err error) {
	if now.Sub(a.at) < announceEvery && !now.Before(a.at) {
		return a.at.Add(announceEvery), nil
	}
	return now.Add(maxSleep), a.announce(now)
}

// announce journals what is confirmed when the window has drained, or when it is more than headers
// can say.
func (a *announcer) announce(now time.Time) error {
	drained := a.ledger.Drained() && a.ledger.Refused() == 0
	if !drained && len(a.ledger.Above()) <= ledger.MaxRanges {
		return nil
	}
	return a.announceAll(now)
}

// journalConfirmed journals what is confirmed. A record without an answer is replaced.
func (a *announcer) journalConfirmed(now time.Time) error {
	a.passes, a.at = a.ledger.Passes(), now
	r := wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(now), Epoch: a.ledger.Epoch(),
		Through: a.ledger.Watermark(), Above: slices.Clone(a.ledger.Above()), RoutedTo: a.routing.news()}
	return a.ledger.Send(&ledger.Publish{Plain: true, Lost: func() { a.passes = -1 }, LostAfter: ledger.SilentAfter,
		Build: func(seq, confirmed int64) wire.Message { return r.Append(wire.Journal, seq, confirmed) }})
}

// announceAll journals what is confirmed, unless all of it is journaled.
func (a *announcer) announceAll(now time.Time) error {
	if a.ledger.Passes() == a.passes && !a.routing.hasNews() {
		return nil
	}
	return a.journalConfirmed(now)
}

// hasReadBack reports whether the view has read everything that this epoch knows to be confirmed,
// or never will.
func (a *announcer) hasReadBack() bool {
	state := a.entries.State()
	return a.ledger.Epoch() < 0 || state.Epoch != a.ledger.Epoch() || state.Confirmed >= a.ledger.Watermark()
}

// sayWithin is how long that may take: the journal may be out of reach.
const sayWithin = 3 * time.Second

// sayLastWords journals that the last epoch of this process has ended and what it knows to be
// confirmed, as soon as there is a connection again. The next leader need not wait for this one
// then, nor fire again what was confirmed.
func (s *Scheduler) sayLastWords(ctx context.Context, conn *broker.Conn) {
	if s.checkKnown(); !s.unsaid || s.known == nil {
		return
	}
	s.unsaid = false
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	if err := s.sendLastWords(ctx, conn, s.known); err != nil {
		s.log.Warn("scheduler: cannot journal what was confirmed when the connection was lost", "epoch", s.known.Epoch, "error", err)
	}
}

// checkKnown forgets what is known to be confirmed, if that may be about another epoch.
func (s *Scheduler) checkKnown() {
	state := s.entries.State()
	if state.Journals != s.journals { // it was about a journal that is gone
		s.known, s.journals = nil, state.Journals
	}
	// If the view was rolled back, another epoch may have the same number.
	if s.knownAt != s.view.RolledBack() && state.Identity != s.knownBy {
		s.known = nil
	}
}

func (s *Scheduler) sendLastWords(ctx context.Context, conn *broker.Conn, known *wire.Confirmed) error {
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	return pub.Send(ctx, lastWords(time.Now(), known).Append(wire.Journal, 0, 0))
}

// lastWords returns what a process journals of an epoch that it has led.
func lastWords(now time.Time, known *wire.Confirmed) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(now), Epoch: known.Epoch, Through: known.Through, Above: known.Above, Ended: true}
}
