package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
)

// End is where a stream ends, as far as the view knows.
type End struct {
	Written int64 // offset of the newest record; -1 if the stream is empty
	Left    int64 // offsets up to Written that are not folded yet, including holes
}

const (
	askEndsEvery = 30 * time.Second
	askEndWithin = 10 * time.Second
	askSoon      = 5 * time.Second // while a leader waits; leaves time to ask a second node
)

// askEnds periodically asks the source where the streams end, one after another. A reader that gets
// nothing does not know whether there is more.
func (v *View) askEnds(ctx context.Context) error {
	for pause.For(ctx, askEndsEvery) == nil {
		for _, t := range v.streams {
			t.askEnd(ctx, askEndWithin)
		}
	}
	return nil
}

// AskEnds asks where the named streams end. A reader that is behind and got nothing between two
// calls continues on another node, because its own may be cut off from the stream's leader. AskEnds
// returns within seconds, even if a node does not answer.
func (v *View) AskEnds(ctx context.Context, names ...string) {
	var asked sync.WaitGroup
	defer asked.Wait()
	for _, t := range v.streams {
		if slices.Contains(names, t.stream) {
			asked.Go(func() { t.askEnd(ctx, askSoon) })
		}
	}
}

// askEnd asks where the stream ends. It does nothing if the stream has no reader, or a question is
// still open.
func (t *tail) askEnd(parent context.Context, within time.Duration) {
	if !t.source.LastIsCheap() {
		return
	}
	generation, connectedAt, asks := t.asks()
	if !asks {
		return
	}
	ctx, cancel := context.WithTimeout(parent, within)
	defer cancel()
	askedAt := time.Now()
	last, err := t.lastOffset(ctx)
	if err != nil && parent.Err() == nil {
		t.view.log.Debug("view: cannot see where a stream ends", "stream", t.stream, "error", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end.asking = false
	// The answer is for another reader.
	if t.gen != generation || !t.state.connected() || t.end.connectedAt != connectedAt {
		return
	}
	t.end.last, t.end.askedAt, t.end.known = last, askedAt, err == nil
	if t.end.stalled(t.position, time.Now()) {
		t.stop(streams.ErrMoved)
	}
}

// HasRead reports whether the view has folded a stream to the end that it had at some time after
// since. It knows only the ends that were asked for.
func (v *View) HasRead(stream string, since time.Time) bool {
	return slices.ContainsFunc(v.streams, func(t *tail) bool { return t.stream == stream && t.hasRead(since) })
}

func (p *progress) hasRead(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == stateRunning && p.end.known && p.end.askedAt.After(since) && p.position >= p.end.last
}

func (p *progress) asks() (generation int, connectedAt time.Time, asks bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.connected() || p.end.asking {
		return 0, time.Time{}, false
	}
	p.end.asking = true
	return p.gen, p.end.connectedAt, true
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
