package view

import (
	"context"
	"errors"
	"fmt"
)

func (e *LostEndError) Error() string {
	return fmt.Sprintf("the journal lost confirmed records, behind %d", e.End)
}

// identify compares a stream with what the view knows about it.
func (t *tail) identify(ctx context.Context) (f finding, err error) {
	at, err := readPosition(t.store, t.stream)
	if err != nil || at.offset == none {
		return f, err
	}
	last, err := t.lastOffset(ctx)
	if err != nil {
		t.endsBelow(false) // patience begins again
		return f, err
	}
	below := last < at.offset
	waited := t.endsBelow(below)
	if !below {
		there, err := t.stillThere(ctx, at, last)
		if err != nil || there {
			return f, err
		}
	}
	f = finding{verdict: streamEmpty}
	if last != none {
		if f, err = t.identifyByMarks(ctx, at, last); err != nil {
			return f, err
		}
	}
	f.below = below
	if below && f.verdict != streamTruncated && !f.proven && waited < patience {
		f.verdict = streamUnclear
	}
	return f, nil
}

// rollBack brings the view back to the newest checkpoint with a last folded record that the stream
// still has. All streams are read again from there. done is false if there is no such checkpoint.
func (t *tail) rollBack(ctx context.Context, reason error) (done bool, err error) {
	last, err := t.lastOffset(ctx)
	if err != nil {
		return false, err
	}
	pasts, err := t.store.pasts(t.stream)
	if err != nil {
		return false, &fatalError{err}
	}
	for i, p := range pasts {
		if p.at.offset != none {
			if p.at.offset > last || i > 0 && p.at == pasts[i-1].at {
				continue
			}
			c, err := t.compare(ctx, p.at)
			if err != nil {
				return false, err
			}
			if c != same {
				continue
			}
		}
		switch err := t.view.rollBack(p.number); {
		case errors.Is(err, errNoCheckpoint): // it has just been dropped
			return false, reason
		case err != nil:
			return false, &fatalError{err}
		}
		t.view.log.Warn("view: a stream lost records that were not confirmed, as in a failover of the broker; the view is rolled back and reads on",
			"stream", t.stream, "to", p.at.offset, "error", reason)
		return true, nil
	}
	return false, nil
}
