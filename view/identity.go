package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/streams"
)

// verdict is what became of a stream that does not go on where the view had read it.
type verdict int

const (
	whole   verdict = iota // the one that was read: the last record that was folded is there
	short                  // the one that was read, without some of its newest records; what is known to be confirmed is there
	gapped                 // the same, and what is known to be confirmed is not there
	anew                   // another one of the same name
	empty                  // nothing stands in it
	unclear                // it seems to be gapped, anew or empty: too soon after a failover to believe that
)

// patience is for how long a stream must end below what was read before that is believed. After a
// failover a stream's leader may not know yet how far the stream is committed: it answers as if it
// were empty, or shorter than it is.
const patience = 30 * time.Second

// LostEndError says that the journal has lost records that are known to be confirmed.
type LostEndError struct {
	End int64 // the newest record that the journal still had
}

func (e *LostEndError) Error() string {
	return fmt.Sprintf("the journal lost confirmed records, behind %d", e.End)
}

// finding is what a comparison of a stream with what is known of it came to.
type finding struct {
	verdict verdict
	end     int64 // where a short or gapped stream stopped being the one that was read, or less
	proven  bool  // another record stands where one was read: waiting changes nothing
	below   bool  // it ends below what was read
}

// judge compares a stream with what is known of it.
func (t *tail) judge(ctx context.Context) (f finding, err error) {
	at, err := readPosition(t.view.store, t.stream)
	if err != nil || at.offset == none {
		return f, err
	}
	last, ok, err := t.view.source.Last(ctx, t.stream)
	if err != nil {
		t.endsBelow(false) // patience is counted in answers
		return f, err
	}
	below := !ok || last < at.offset
	waited := t.endsBelow(below)
	if !below {
		there, err := t.stillThere(ctx, at, last)
		if err != nil || there {
			return f, err
		}
	}
	f = finding{verdict: empty}
	if ok {
		if f, err = t.judgeByMarks(ctx, at, last); err != nil {
			return f, err
		}
	}
	f.below = below
	if below && f.verdict != short && !f.proven && waited < patience {
		f.verdict = unclear
	}
	return f, nil
}

// stillThere reports whether a stream that ends at last has a record that was folded, as far as that
// can be known. What retention took was there.
func (t *tail) stillThere(ctx context.Context, at position, last int64) (bool, error) {
	c, err := t.compare(ctx, at)
	switch {
	case err != nil:
		return false, err
	case c == notFound && last > at.offset:
		first, _, err := t.view.source.First(ctx, t.stream)
		return first > at.offset, err
	}
	return c != differs, nil
}

// judgeByMarks judges a stream that has records, but not the last one that was folded, by older ones.
func (t *tail) judgeByMarks(ctx context.Context, at position, last int64) (f finding, err error) {
	confirmed, err := readMark(t.view.store, keyConfirmed(t.stream))
	if err != nil {
		return f, err
	}
	lost := confirmed.offset > last
	if confirmed.offset != none && !lost {
		switch c, err := t.compare(ctx, confirmed); {
		case err != nil:
			return f, err
		case c == same && confirmed != at:
			return finding{verdict: short, end: confirmed.offset}, nil
		case c == differs:
			lost, f.proven = true, true
		}
	}
	known, err := landmarks(t.view.store, t.stream)
	if err != nil {
		return f, err
	}
	return t.judgeByLandmarks(ctx, known, at, last, finding{proven: f.proven, verdict: shortOr(lost)})
}

func shortOr(lost bool) verdict {
	if lost {
		return gapped
	}
	return short
}

// judgeByLandmarks looks for the newest record that is still there. kept is what is said of a stream
// that has one.
func (t *tail) judgeByLandmarks(ctx context.Context, known []position, at position, last int64, kept finding) (finding, error) {
	differ := false
	for _, mark := range known {
		if mark.offset > last || mark.offset >= at.offset {
			continue
		}
		c, err := t.compare(ctx, mark)
		if err != nil {
			return finding{}, err
		}
		if c == same {
			kept.end = mark.offset
			if last < at.offset {
				kept.end = last
			}
			return kept, nil
		}
		differ = differ || c == differs
	}
	first, ok, err := t.view.source.First(ctx, t.stream)
	switch {
	case err != nil:
		return finding{}, err
	case !ok: // it ends somewhere: the broker is too slow to say where it begins
		return finding{verdict: unclear}, nil
	}
	if first > firstOffset { // it has forgotten its beginning, and with that what is known of it: it is not new
		kept.end = min(last, at.offset-1)
		return kept, nil
	}
	return finding{verdict: anew, proven: differ}, nil
}

// firstOffset is the highest offset at which a broker begins a stream: RabbitMQ at 0, LavinMQ at 1.
const firstOffset = 1

// comparison is what a stream has where a record was folded.
type comparison int

const (
	same comparison = iota
	differs
	notFound    // nothing came
	notCompared // one of the two could not be read
)

// compare asks for a record that was folded.
func (t *tail) compare(ctx context.Context, at position) (comparison, error) {
	if at.sum == unreadable {
		return notCompared, nil
	}
	r, err := t.view.source.Fetch(ctx, t.stream, at.offset)
	switch {
	case errors.Is(err, streams.ErrNotFound):
		return notFound, nil
	case err != nil:
		return notCompared, fmt.Errorf("view: %s at %d: %w", t.stream, at.offset, err)
	}
	switch sum := checksum(&r); sum {
	case unreadable:
		return notCompared, nil
	case at.sum:
		return same, nil
	}
	return differs, nil
}

// endsBelow notes whether the stream ends below what was read, and returns for how long it has.
func (t *tail) endsBelow(below bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !below {
		t.belowSince = time.Time{}
		return 0
	}
	if t.belowSince.IsZero() {
		t.belowSince = time.Now()
	}
	return time.Since(t.belowSince)
}

// rollBack brings the view back to where it stood when the stream's last record that was folded was
// one that it still has, and has all streams read again from there. done is false where the view
// cannot be rolled back so far.
func (t *tail) rollBack(ctx context.Context, reason error) (done bool, err error) {
	last, ok, err := t.view.source.Last(ctx, t.stream)
	if err != nil {
		return false, err
	}
	pasts, err := t.view.store.pasts(t.stream)
	if err != nil {
		return false, &fatalError{err}
	}
	for i, p := range pasts {
		if p.at.offset != none {
			if !ok || p.at.offset > last || i > 0 && p.at == pasts[i-1].at {
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
