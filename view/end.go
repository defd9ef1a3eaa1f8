package view

import "time"

// End is where a stream ends, as far as the view knows.
type End struct {
	Written int64 // offset of the newest record; -1 if the stream is empty
	Left    int64 // offsets up to Written that are not folded yet, including holes
}

// streamEnd says where a reader began, and where its stream ends.
type streamEnd struct {
	connectedAt time.Time // when the reader had asked for the end
	start       int64     // where the reader began; none: at the first record
	last        int64     // end of the stream when last asked for
	askedAt     time.Time // when that was, if the reader was connected then
	known       bool      // last was answered, and is asked for again
	asking      bool      // a question for the end is open
	stall
}

// stall is where a reader was found to be behind the end of its stream.
type stall struct {
	behindAt    int64     // its position, or unmoved
	behindSince time.Time // when that was
	movedFor    int64     // the end for which a reader was last moved
	movedAt     time.Time // when that was
}

func newStall() stall { return stall{behindAt: unmoved, movedFor: none} }

// connected notes where a new reader begins, and where its stream ends.
func (e *streamEnd) connected(start, last int64, known bool) {
	e.start, e.last, e.known = start, last, known
	e.connectedAt, e.behindAt = time.Now(), unmoved
}

const (
	// behindFor is how long a reader that is behind must get nothing before it moves to another
	// node.
	behindFor = 400 * time.Millisecond
	// settlesIn is how long a reader may take to begin.
	settlesIn = 2 * time.Second
	// moveAgain is when a reader that is behind the same end moves again: its new node may be cut
	// off too.
	moveAgain = time.Minute
)

// stalled reports whether a reader is behind the stream's end, which was just asked for, and gets
// nothing. It must then move to another node.
func (e *streamEnd) stalled(position int64, now time.Time) bool {
	at := max(position, e.start-1)
	switch {
	case !e.known || e.last <= at:
		e.behindAt = unmoved
	case e.behindAt != at:
		e.behindAt, e.behindSince = at, now
	case now.Sub(e.behindSince) < behindFor || now.Sub(e.connectedAt) < settlesIn:
	// Only once for each end: the missing offsets may be a hole.
	case e.movedFor != e.last || now.Sub(e.movedAt) >= moveAgain:
		e.behindAt, e.movedFor, e.movedAt = unmoved, e.last, now
		return true
	}
	return false
}

// unmoved is not a position of any stream.
const unmoved = none - 1

// left returns nil if the end is unknown, because the last question had no answer. It also returns
// nil before the first record of a stream that is read from its beginning: records that retention
// has deleted are not left to fold.
func (e *streamEnd) left(position int64) *End {
	if !e.known {
		return nil
	}
	// The records that were folded since the question are in the stream too.
	written := max(e.last, position)
	if position == none && e.start == none && written != none {
		return nil
	}
	return &End{written, max(0, written-max(position, e.start-1))}
}
