package httpapi

import (
	"context"
	"time"
)

// readBackWithin is how long this sidecar may take to read what the leader has read back.
const readBackWithin = 2 * time.Second

// readBack looks after each change of the view until what is wanted is there or cannot come any more, and gives up after a while.
func (s *Server) readBack(ctx context.Context, within time.Duration, ended func() bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		changed := s.cfg.View.Changed() // before the look: what comes after it is seen
		if ended() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
