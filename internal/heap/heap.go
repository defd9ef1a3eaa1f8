// Package heap keeps the memory of the process small.
//
// The garbage collector lets the heap grow to twice what is live before it collects. That is cheap
// while much is allocated, and wasteful afterwards: memory that a burst has used is not given back.
// Pace limits the growth to what is allocated in two seconds. So a busy process collects as before,
// and a calm one keeps little more than what is live.
package heap

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	every  = 500 * time.Millisecond
	paced  = 2 * time.Second
	little = 16 << 20 // the least growth
)

// Pace limits the growth of the heap until ctx ends. It does nothing if GOMEMLIMIT or GOGC says how
// the collector works.
func Pace(ctx context.Context) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	defer debug.SetMemoryLimit(math.MaxInt64)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last, set := read(), int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := read()
		// A new limit stops the world for a moment.
		if to := limit(now, (now.allocated-last.allocated)*int64(paced/every)); to < set-little/4 || to > set+little/4 {
			debug.SetMemoryLimit(to)
			set = to
		}
		last = now
	}
}

// state is what the runtime says of its memory, in bytes.
type state struct {
	live      int64 // what the last collection found
	around    int64 // mapped, and neither objects nor free
	allocated int64 // since the process began
}

// limit returns how much memory the runtime may use, if so many bytes are allocated in two seconds.
func limit(s state, allocated int64) int64 {
	return s.live + s.around + max(little, min(allocated, s.live))
}

func read() state {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	of := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return state{live: of(0), allocated: of(1), around: of(2) - of(3) - of(4) - of(5)}
}
