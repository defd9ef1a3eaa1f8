package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/streams"
)

// verdict says what happened to a stream that does not continue where the view had read it.
type verdict int

const (
	streamIntact    verdict = iota // the stream that was read: it has the last folded record
	streamTruncated                // the stream that was read, without some of its newest records
	streamGapped                   // the same, but records that are known to be confirmed are missing
	streamReplaced                 // another stream of the same name
	streamEmpty                    // a stream without records
	streamUnclear                  // seems to be one of the last three: it is too soon after a failover
)

// patience is how long a stream must end below the last folded record before the view believes it.
// After a failover, the stream's leader may not know yet how far the stream is committed. It
// answers as if the stream were empty, or shorter than it is.
const patience = 30 * time.Second

// LostEndError is returned when the journal has lost records that are known to be confirmed.
type LostEndError struct {
	End int64 // the newest record that the journal still has
}

// finding is the result of comparing a stream with what the view knows about it.
type finding struct {
	verdict verdict
	// end is the last old record that a truncated or gapped stream has left, or an earlier one.
	end    int64
	proven bool // another record has the offset of a folded one: waiting changes nothing
	below  bool // the stream ends below the last folded record
}

// comparer compares a stream with what the store knows about it.
type comparer struct {
	store  *Store
	source Source
	stream string
}

// lastOffset returns the offset of the newest record, or none if the stream is empty.
func (c *comparer) lastOffset(ctx context.Context) (int64, error) {
	last, ok, err := c.source.Last(ctx, c.stream)
	if !ok {
		last = none
	}
	return last, err
}

var errMismatch = errors.New("view: the stream does not continue where it was read")

// mustReach returns errMismatch if a stream that ends at last lacks the last folded record.
func (c *comparer) mustReach(at position, last int64) error {
	if last < at.offset {
		return fmt.Errorf("%w: %s ends at %d, %d was read before", errMismatch, c.stream, last, at.offset)
	}
	return nil
}

// stillThere reports whether a stream that ends at last has the record at, as far as this can be
// known. A record that retention has deleted counts as there.
func (c *comparer) stillThere(ctx context.Context, at position, last int64) (bool, error) {
	is, err := c.compare(ctx, at)
	switch {
	case err != nil:
		return false, err
	case is == notFound && last > at.offset:
		first, _, err := c.source.First(ctx, c.stream)
		return first > at.offset, err
	}
	return is != differs, nil
}

// identifyByMarks identifies a stream that has records, but not the last folded one, by older
// records.
func (c *comparer) identifyByMarks(ctx context.Context, at position, last int64) (f finding, err error) {
	confirmed, err := readMark(c.store, keyConfirmed(c.stream))
	if err != nil {
		return f, err
	}
	lost := confirmed.offset > last
	if confirmed.offset != none && !lost {
		switch is, err := c.compare(ctx, confirmed); {
		case err != nil:
			return f, err
		case is == same && confirmed != at:
			return finding{verdict: streamTruncated, end: confirmed.offset}, nil
		case is == differs:
			lost, f.proven = true, true
		}
	}
	known, err := landmarks(c.store, c.stream)
	if err != nil {
		return f, err
	}
	return c.identifyByLandmarks(ctx, known, at, last, finding{proven: f.proven, verdict: truncatedOrGapped(lost)})
}

func truncatedOrGapped(lost bool) verdict {
	if lost {
		return streamGapped
	}
	return streamTruncated
}

// identifyByLandmarks looks for the newest landmark that the stream still has. kept is the finding
// for a stream that has one.
func (c *comparer) identifyByLandmarks(ctx context.Context, known []position, at position, last int64, kept finding) (finding, error) {
	differ := false
	for _, mark := range known {
		if mark.offset > last || mark.offset >= at.offset {
			continue
		}
		is, err := c.compare(ctx, mark)
		if err != nil {
			return finding{}, err
		}
		if is == same {
			kept.end = mark.offset
			if last < at.offset {
				kept.end = last
			}
			return kept, nil
		}
		differ = differ || is == differs
	}
	first, ok, err := c.source.First(ctx, c.stream)
	switch {
	case err != nil:
		return finding{}, err
	// The stream has an end, so the broker was too slow to report the beginning.
	case !ok:
		return finding{verdict: streamUnclear}, nil
	}
	// Retention has deleted the beginning, and with it the landmarks. So the stream is not new.
	if first > firstOffset {
		kept.end = min(last, at.offset-1)
		return kept, nil
	}
	return finding{verdict: streamReplaced, proven: differ}, nil
}

// firstOffset is the highest offset at which a broker begins a stream: RabbitMQ begins at 0,
// LavinMQ at 1.
const firstOffset = 1

// comparison says what a stream has at the offset of a folded record.
type comparison int

const (
	same comparison = iota
	differs
	notFound    // no record came
	notCompared // one of the two could not be read
)

// compare fetches the record at a folded offset, and compares the two.
func (c *comparer) compare(ctx context.Context, at position) (comparison, error) {
	if at.sum == unreadable {
		return notCompared, nil
	}
	r, err := c.source.Fetch(ctx, c.stream, at.offset)
	switch {
	case errors.Is(err, streams.ErrNotFound):
		return notFound, nil
	case err != nil:
		return notCompared, fmt.Errorf("view: %s at %d: %w", c.stream, at.offset, err)
	}
	switch sum := checksum(&r); sum {
	case unreadable:
		return notCompared, nil
	case at.sum:
		return same, nil
	}
	return differs, nil
}
