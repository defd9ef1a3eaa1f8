package view

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
)

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
