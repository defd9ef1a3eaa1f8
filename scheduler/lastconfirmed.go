package scheduler

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// sayWithin is how long that may take: the journal may be out of reach.
const sayWithin = 3 * time.Second

// journalKnown journals what the last epoch of this process knows to be confirmed, as soon as there
// is a connection again. Another sidecar may lead by then: what it has not reconciled yet, it need
// not fire again.
func (s *Scheduler) journalKnown(ctx context.Context, conn *broker.Conn) {
	if s.checkKnown(); !s.unjournaled || s.known == nil {
		return
	}
	s.unjournaled = false
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	if err := s.sendConfirmed(ctx, conn, s.known); err != nil {
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

// sendConfirmed journals what is confirmed.
func (s *Scheduler) sendConfirmed(ctx context.Context, conn *broker.Conn, known *wire.Confirmed) error {
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	r := wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(time.Now()), Epoch: known.Epoch, Through: known.Through, Above: known.Above}
	return pub.Send(ctx, r.Append(wire.Journal, 0, 0))
}
