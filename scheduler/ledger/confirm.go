package ledger

import (
	"fmt"
	"time"
)

// Confirmed takes in that the broker took a publish, or refused it.
func (l *Ledger) Confirmed(now time.Time, tag uint64, ack bool) error {
	p := l.answer(tag, ack)
	switch {
	case p == nil:
		return nil
	case ack:
		l.cfg.Took(now.Sub(p.sent))
		l.Accept(p)
		return nil
	case p.Returned != nil:
		return p.Returned(now, Nack, true)
	}
	p.nacks++
	if p.nacks > maxNacks {
		return fmt.Errorf("scheduler: the journal refused a record %d times", p.nacks)
	}
	l.pass(p.seq)
	l.refused, l.again = append(l.refused, p), now.Add(AgainAfter)
	return nil
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

const (
	maxNacks = 50
	// AgainAfter is when a record that was refused is published again.
	AgainAfter = 100 * time.Millisecond
)

// Accept notes that the broker has a publish.
func (l *Ledger) Accept(p *Publish) {
	p.acked = true
	if !p.KeepOpen {
		l.pass(p.seq)
	}
	delete(l.cfg.Suspects, p.Entry)
	if p.Confirmed != nil {
		p.Confirmed()
	}
	if p.Folded != nil {
		l.after(p.seq, p.Folded)
	}
}

// Close closes the number of a publish that was kept open. A leader that dies before leaves its
// entry in doubt to the next one.
func (l *Ledger) Close(p *Publish) { l.pass(p.seq) }

// publishAgain repeats the records that the broker refused.
func (l *Ledger) publishAgain() error {
	if l.now.Before(l.again) {
		return nil
	}
	items := l.refused
	l.refused = nil
	for _, p := range items {
		if err := l.Send(p); err != nil {
			return err
		}
	}
	return nil
}

// Refused returns how many records wait to be published again.
func (l *Ledger) Refused() int { return len(l.refused) }
