// Package pause is how everything here waits: until a time has passed or a context ends, whichever comes first.
package pause

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// For waits. It fails if ctx ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Growing gives pauses between attempts: from a tenth of a second, growing up to the longest, and never twice the same.
func Growing(longest time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, longest
	return b
}
