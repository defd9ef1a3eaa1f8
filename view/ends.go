package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
)

// End is where a stream ends, as far as is known.
type End struct {
	Written int64 // the newest record; -1 if the stream is empty
	Left    int64 // offsets up to there of which nothing was folded yet; holes are among them
}

const (
	askEndsEvery = 30 * time.Second
	askEndWithin = 10 * time.Second
	askSoon      = 5 * time.Second // while a leader waits; leaves time to ask a second node
)

// askEnds asks the source time and again where the streams end, one after the other: a reader to which nothing comes does not know whether
// there is more.
func (v *View) askEnds(ctx context.Context) error {
	for pause.For(ctx, askEndsEvery) == nil {
		for _, t := range v.streams {
			t.askEnd(ctx, askEndWithin)
		}
	}
	return nil
}

// AskEnds asks where the named streams end. A reader that is behind, and got nothing between two calls, continues on another node: its own
// may be cut off from the stream's leader. AskEnds returns within seconds, even if a node does not answer.
func (v *View) AskEnds(ctx context.Context, names ...string) {
	var asked sync.WaitGroup
	defer asked.Wait()
	for _, t := range v.streams {
		if slices.Contains(names, t.stream) {
			asked.Go(func() { t.askEnd(ctx, askSoon) })
		}
	}
}

// askEnd asks where the stream ends. It does nothing if the stream has no reader, or has been asked and has not answered yet.
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
	if t.gen != generation || !t.connected || t.aimedAt != aimedAt { // it is another reader's answer
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
	// behindFor is how long nothing must have come to a reader that is behind, before it goes on at another node.
	behindFor = 400 * time.Millisecond
	// settlesIn is what a reader may need to begin.
	settlesIn = 2 * time.Second
	// moveAgain is when a reader that is behind the same end is moved again: the node to which it was moved may be cut off too.
	moveAgain = time.Minute
)

// noteBehind notes whether the reader is behind the stream's end, which has just been asked for. One to which nothing comes is ended.
// t.mu is held.
func (t *tail) noteBehind(now time.Time) {
	at := max(t.position, t.start-1)
	switch {
	case !t.lastKnown || t.last <= at:
		t.behindAt = unmoved
	case t.behindAt != at:
		t.behindAt, t.behindSince = at, now
	case now.Sub(t.behindSince) < behindFor || now.Sub(t.aimedAt) < settlesIn:
	case t.movedFor != t.last || now.Sub(t.movedAt) >= moveAgain: // what is left may be a hole
		t.behindAt, t.movedFor, t.movedAt = unmoved, t.last, now
		t.stop(streams.ErrMoved)
	}
}

// unmoved is no position of a stream.
const unmoved = none - 1

// end is nil where it is not known: nobody reads the stream, or the last question had no answer. Nor is it before the first record of a
// stream that is read from wherever it begins: the records that retention took are not left to be folded. t.mu is held.
func (t *tail) end() *End {
	if !t.connected || !t.lastKnown {
		return nil
	}
	written := max(t.last, t.position) // what was folded since the question is there too
	if t.position == none && t.start == none && written != none {
		return nil
	}
	return &End{written, max(0, written-max(t.position, t.start-1))}
}
