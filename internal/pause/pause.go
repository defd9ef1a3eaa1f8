// Package pause has the waits of all other packages: until a time has passed or a context ends,
// whichever comes first.
package pause

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// For waits for d. It returns an error if ctx ends first.
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

// Growing returns pauses between attempts. They grow from a tenth of a second to longest, and are
// random.
func Growing(longest time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, longest
	return b
}
