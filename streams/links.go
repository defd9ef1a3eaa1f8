package streams

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// KeepLink is how long a connection for questions is kept after one: less than a heartbeat, since
	// nothing reads from it meanwhile. Who asks more often needs no new connection.
	KeepLink = 4 * time.Second

	// askedTogether is how many questions may be under way. One that waits for a node that does not
	// answer holds up no other.
	askedTogether = 8
)

// links keeps connections for questions, to whichever nodes were asked lately.
type links struct {
	turns chan struct{} // as many as may ask

	mu     sync.Mutex
	idle   []*link
	closed bool
}

func newLinks() *links { return &links{turns: make(chan struct{}, askedTogether)} }

// begin waits for a turn to ask.
func (k *links) begin(ctx context.Context) (end func(), err error) {
	select {
	case k.turns <- struct{}{}:
		return func() { <-k.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take returns an idle connection that will do, or nil.
func (k *links) take(willDo func(*link) bool) *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.idle, willDo)
	if i < 0 {
		return nil
	}
	l := k.idle[i]
	k.idle = slices.Delete(k.idle, i, i+1)
	return l
}

// put keeps a connection for the next question, for a while.
func (k *links) put(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		l.close()
		return
	}
	k.idle = append(k.idle, l)
	l.kept++
	kept := l.kept
	time.AfterFunc(KeepLink, func() {
		if k.take(func(other *link) bool { return other == l && l.kept == kept }) != nil {
			l.close()
		}
	})
}

func (k *links) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, l := range k.idle {
		l.close()
	}
	k.idle = nil
}

func (k *links) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}
