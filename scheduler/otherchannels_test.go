package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A probe without an answer is sent on another channel. An answer, whichever it is, ends that, and
// so does the end of the time for all.
func TestProbeWithoutAnswerTakesAnotherChannel(t *testing.T) {
	refused := errors.New("refused")
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, c := range map[string]struct {
		answers []func(context.Context) error
		changes int
		err     error
	}{
		"answered":           {[]func(context.Context) error{func(context.Context) error { return nil }}, 0, nil},
		"refused":            {[]func(context.Context) error{func(context.Context) error { return refused }}, 0, refused},
		"answered later":     {[]func(context.Context) error{waits, waits, func(context.Context) error { return nil }}, 2, nil},
		"refused later":      {[]func(context.Context) error{waits, func(context.Context) error { return refused }}, 1, refused},
		"never":              {[]func(context.Context) error{waits, waits, waits}, 2, context.DeadlineExceeded},
		"not within all":     {[]func(context.Context) error{waits, waits, waits}, 0, context.Canceled},
		"no channel is left": {[]func(context.Context) error{waits}, 1, refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if errors.Is(c.err, context.Canceled) {
				cancel()
			}
			sent, changed := 0, 0
			err := onOtherChannels(ctx, []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}, func(ctx context.Context) error {
				sent++
				return c.answers[sent-1](ctx)
			}, func() error {
				if changed++; sent == len(c.answers) {
					return refused
				}
				return nil
			})
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.changes, changed)
		})
	}
}
