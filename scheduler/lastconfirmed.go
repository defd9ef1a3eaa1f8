package scheduler

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// sayWithin bounds how long last words may take: the journal may be out of reach.
const sayWithin = 3 * time.Second

// journalKnown journals what the last epoch of this process knows to be confirmed, as soon as there is a connection again. Another sidecar
// may lead by then: what it has not settled yet, it need not fire again.
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

// checkKnown forgets what this process knows to be confirmed where that may be about another epoch.
func (s *Scheduler) checkKnown() {
	state := s.entries.State()
	if state.Journals != s.journals { // it was about a journal that is gone
		s.known, s.journals = nil, state.Journals
	}
	if s.knownAt != s.view.RolledBack() && state.Identity != s.knownBy { // the record that began its epoch may be gone, and another one have its number
		s.known = nil
	}
}

func (s *Scheduler) sendConfirmed(ctx context.Context, conn *broker.Conn, known *wire.Confirmed) error {
	pub, err := conn.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close() }()
	r := wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(time.Now()), Epoch: known.Epoch, Through: known.Through, Above: known.Above}
	return pub.Send(ctx, r.Append(wire.Journal, 0, 0))
}
