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
	askSoon      = 2 * time.Second // how long an answer may take that somebody waits for
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

// AskEnds asks where some of the streams end, and returns soon: a node that is cut off does not answer. A reader to which nothing has come between two questions, while there is more, goes on at
// another node: its own may be cut off from the stream's leader, and does not say so.
func (v *View) AskEnds(ctx context.Context, names ...string) {
	var asked sync.WaitGroup
	defer asked.Wait()
	for _, t := range v.streams {
		if slices.Contains(names, t.stream) {
			asked.Go(func() { t.askEnd(ctx, askSoon) })
		}
	}
}

// askEnd asks of one stream that is read; one that is not is asked when its reader begins.
func (t *tail) askEnd(parent context.Context, within time.Duration) {
	generation, reads := t.reads()
	if !reads || !t.view.source.LastIsCheap() {
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
	t.endsAt(generation, last, err == nil)
}

func (t *tail) reads() (generation int, reads bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.gen, t.connected
}

// endsAt notes an answer, unless a rewind has made it old.
func (t *tail) endsAt(generation int, last int64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gen != generation || !t.connected {
		return
	}
	t.last, t.lastKnown = last, known
	switch {
	case !known || last <= t.position:
		t.behindAt = unmoved
	case t.behindAt != t.position:
		t.behindAt = t.position
	case t.movedFor != last: // once for each end: what is left may be a hole
		t.behindAt, t.movedFor = unmoved, last
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
