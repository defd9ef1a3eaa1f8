package heap

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimit(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct{ live, around, allocated, limit int64 }{
		"calm":                      {100 * mb, 20 * mb, 0, 136 * mb},
		"in between":                {100 * mb, 20 * mb, 50 * mb, 170 * mb},
		"busy":                      {100 * mb, 20 * mb, 51 * mb, math.MaxInt64},
		"busy, and little is live":  {5 * mb, 8 * mb, 17 * mb, math.MaxInt64},
		"calm, and little is live":  {5 * mb, 8 * mb, 16 * mb, 29 * mb},
		"nothing was collected yet": {0, 8 * mb, 3 * mb, 24 * mb},
	} {
		require.Equal(t, c.limit, limit(state{live: c.live, around: c.around}, c.allocated), name)
	}
}

func TestPace(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(math.MaxInt64)
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	kept := make([]byte, 64<<20)
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go Pace(ctx)
		time.Sleep(paced + 2*every)
		synctest.Wait()
		set := debug.SetMemoryLimit(-1)
		require.Greater(t, set, int64(64<<20))
		require.Less(t, set, int64(1<<30))
		cancel()
		synctest.Wait()
		require.EqualValues(t, math.MaxInt64, debug.SetMemoryLimit(-1), "it ends")
	})
	runtime.KeepAlive(kept)
}

func TestEnvironmentDecides(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "100")
			before := debug.SetMemoryLimit(-1)
			Pace(t.Context()) // returns
			require.Equal(t, before, debug.SetMemoryLimit(-1))
		})
	}
}
