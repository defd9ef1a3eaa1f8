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
	if !t.view.source.LastIsCheap() {
		return
	}
	generation, aimedAt, asks := t.asks()
	if !asks {
		return
	}
	ctx, cancel := context.WithTimeout(parent, within)
	defer cancel()
	last, ok, err := t.view.source.Last(ctx, t.stream)
	if err != nil && parent.Err() == nil {
		t.view.log.Debug("view: cannot see where a stream ends", "stream", t.stream, "error", err)
	}
	if !ok {
		last = none
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = false
	// The answer is for another reader.
	if t.gen != generation || !t.connected || t.aimedAt != aimedAt {
		return
	}
	t.last, t.lastKnown = last, err == nil
	t.noteBehind(time.Now())
}

func (t *tail) asks() (generation int, aimedAt time.Time, asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.connected || t.asking {
		return 0, time.Time{}, false
	}
	t.asking = true
	return t.gen, t.aimedAt, true
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

// noteBehind updates whether the reader is behind the stream's end, which was just asked for. It
// stops a reader that is behind and gets nothing. The caller holds t.mu.
func (t *tail) noteBehind(now time.Time) {
	at := max(t.position, t.start-1)
	switch {
	case !t.lastKnown || t.last <= at:
		t.behindAt = unmoved
	case t.behindAt != at:
		t.behindAt, t.behindSince = at, now
	case now.Sub(t.behindSince) < behindFor || now.Sub(t.aimedAt) < settlesIn:
	// Only once for each end: the missing offsets may be a hole.
	case t.movedFor != t.last || now.Sub(t.movedAt) >= moveAgain:
		t.behindAt, t.movedFor, t.movedAt = unmoved, t.last, now
		t.stop(streams.ErrMoved)
	}
}

// unmoved is not a position of any stream.
const unmoved = none - 1

// end returns nil if the end is unknown, because the stream has no reader or the last question had
// no answer. It also returns nil before the first record of a stream that is read from its
// beginning: records that retention has deleted are not left to fold. The caller holds t.mu.
func (t *tail) end() *End {
	if !t.connected || !t.lastKnown {
		return nil
	}
	// The records that were folded since the question are in the stream too.
	written := max(t.last, t.position)
	if t.position == none && t.start == none && written != none {
		return nil
	}
	return &End{written, max(0, written-max(t.position, t.start-1))}
}
