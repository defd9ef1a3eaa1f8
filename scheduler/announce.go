package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
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

const (
	// sayWithin is how long the journal may take to confirm the last words of an epoch. Then they
	// are sent again: the journal may have no leader yet.
	sayWithin = time.Second
	// sayFor is how long they are of use.
	sayFor = 10 * time.Second
)

// takeLastWords returns what the journal does not have of the last epoch of this process: that it
// has ended, and what it knows to be confirmed. The next leader then need not wait for this one,
// and does not fire again what was confirmed. It returns nil if there is nothing to say.
func (s *Scheduler) takeLastWords() *wire.JournalRecord {
	if s.checkKnown(); s.known == nil || !s.unsaid.Swap(false) {
		return nil
	}
	return new(lastWords(time.Now(), s.known, s.knownBy))
}

func lastWords(now time.Time, known *wire.Confirmed, by string) wire.JournalRecord {
	return wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(now), Epoch: known.Epoch, Through: known.Through, Above: known.Above,
		Identity: by, Ended: true}
}

// sayLastWords journals them, or leaves them to the next connection. Another sidecar may lead by
// then.
func (s *Scheduler) sayLastWords(ctx context.Context, conn *broker.Conn, words *wire.JournalRecord) {
	ctx, cancel := context.WithTimeout(ctx, sayFor)
	defer cancel()
	for {
		err := sendLastWords(ctx, conn, words)
		if err == nil {
			return
		}
		if ctx.Err() != nil || conn.Err() != nil {
			s.unsaid.Store(true)
			return
		}
		s.log.Debug("scheduler: cannot journal yet that the last epoch has ended", "epoch", words.Epoch, "error", err)
		_ = pause.For(ctx, leaseLookEvery)
	}
}

func sendLastWords(ctx context.Context, conn *broker.Conn, words *wire.JournalRecord) error {
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	return pub.Send(ctx, words.Append(wire.Journal, 0, 0))
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
