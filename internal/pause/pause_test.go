package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		require.NoError(t, pause.For(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(begun))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, pause.For(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, time.Hour+time.Second, time.Since(begun))
	})
}

func TestGrowing(t *testing.T) {
	b := pause.Growing(2 * time.Second)
	require.InDelta(t, 100*time.Millisecond, b.NextBackOff(), float64(50*time.Millisecond))
	for range 20 {
		b.NextBackOff()
	}
	require.InDelta(t, 2*time.Second, b.NextBackOff(), float64(time.Second))
}
