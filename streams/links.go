package streams

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// KeepLink is how long a connection for queries is kept after a query. That is less than a
	// heartbeat, because nothing reads from an idle connection. A caller that asks more often needs
	// no new connection.
	KeepLink = 4 * time.Second

	// askedTogether is how many queries may run concurrently. A query that waits for a silent node
	// does not hold up the others.
	askedTogether = 8
)

// links keeps connections for queries, to the nodes that were asked recently.
type links struct {
	turns chan struct{} // one element for each running query

	mu     sync.Mutex
	idle   []*link
	closed bool
}

func newLinks() *links { return &links{turns: make(chan struct{}, askedTogether)} }

// begin waits until another query may run.
func (k *links) begin(ctx context.Context) (end func(), err error) {
	select {
	case k.turns <- struct{}{}:
		return func() { <-k.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take removes and returns an idle connection that willDo accepts. It returns nil if there is none.
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

// put keeps a connection for the next query. It closes the connection after KeepLink.
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
