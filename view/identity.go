package view

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-jobs/millrace/streams"
)

// verdict is what a stream turned out to be that does not go on where the view had read it.
type verdict int

const (
	whole verdict = iota // the one that was read: the last record that was folded is there
	short                // the one that was read, without its newest records
	anew                 // another one of the same name
)

// LostEndError says that the journal has lost its newest records: of what was done then nothing is known any more.
type LostEndError struct {
	End int64 // the newest record that the journal still had
}

func (e *LostEndError) Error() string {
	return fmt.Sprintf("the journal lost its newest records, those behind %d", e.End)
}

// judge compares a stream with what is known of it. RabbitMQ confirms what it has not brought to the disk yet, so a power failure may take
// a stream's newest records; then the older ones are still those that were read. end is where a short stream ended, or less.
func (t *tail) judge(ctx context.Context) (v verdict, end int64, err error) {
	at, err := readPosition(t.view.store, t.stream)
	if err != nil || at.offset == none {
		return whole, 0, err
	}
	last, ok, err := t.view.source.Last(ctx, t.stream)
	if err != nil {
		return whole, 0, err
	}
	same, compared, err := t.compare(ctx, at)
	switch {
	case err != nil || same || ok && last >= at.offset && !compared:
		return whole, 0, err
	case !ok: // nothing is left of it, whatever it is
		return anew, 0, nil
	}
	return t.judgeByLandmarks(ctx, at, last)
}

func (t *tail) judgeByLandmarks(ctx context.Context, at position, last int64) (v verdict, end int64, err error) {
	known, err := landmarks(t.view.store, t.stream)
	if err != nil {
		return whole, 0, err
	}
	for _, mark := range known {
		if mark.offset > last || mark.offset >= at.offset {
			continue
		}
		same, _, err := t.compare(ctx, mark)
		switch {
		case err != nil:
			return whole, 0, err
		case same && last < at.offset:
			return short, last, nil
		case same:
			return short, mark.offset, nil
		}
	}
	first, _, err := t.view.source.First(ctx, t.stream)
	if err != nil {
		return whole, 0, err
	}
	if first > firstOffset { // it has forgotten its beginning, and with that what is known of it: it is not new
		return short, min(last, at.offset-1), nil
	}
	return anew, 0, nil
}

// firstOffset is the highest offset at which a broker begins a stream: RabbitMQ at 0, LavinMQ at 1.
const firstOffset = 1

// compare asks for a record that was folded. compared is false where it does not come, or cannot be read.
func (t *tail) compare(ctx context.Context, at position) (same, compared bool, err error) {
	r, err := t.view.source.Fetch(ctx, t.stream, at.offset)
	switch {
	case errors.Is(err, streams.ErrNotFound):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("view: %s at %d: %w", t.stream, at.offset, err)
	}
	sum := checksum(&r)
	if sum == unreadable || at.sum == unreadable {
		return false, false, nil
	}
	return sum == at.sum, true, nil
}

// lostEnd has the view built anew, for the older records of a stream say something else without the newer ones: what was replaced is
// pending again. If the journal lost its end too, the next view must know.
func (t *tail) lostEnd(ctx context.Context, reason error) error {
	why := fmt.Errorf("%s lost its newest records, which the broker had confirmed: %w", t.stream, reason)
	v, end, err := t.view.streams[0].judge(ctx)
	if err != nil {
		return err
	}
	if v == short {
		why = fmt.Errorf("%w; %w", &LostEndError{End: end}, why)
	}
	t.view.log.Error("view: a stream lost records that the broker had confirmed, as a power failure takes them; the view is built anew",
		"stream", t.stream, "error", why)
	return t.rebuild(why)
}
