// Package heap keeps the memory of the process small.
//
// The garbage collector lets the heap grow to twice what is live before it collects. That is cheap
// while much is allocated, and wasteful afterwards: memory that a burst has used is not given back.
// Pace limits the growth of a calm process to what it allocates in two seconds, so it keeps little
// more than what is live. A busy process collects as before: near a limit, the runtime gives pages
// back and takes them again, which costs a fifth of its time.
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
	every  = 100 * time.Millisecond
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
	set, busyAt, busy := int64(math.MaxInt64), time.Now(), false
	for last := read(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := read()
		to := limit(now, (now.allocated-last.allocated)*int64(paced/every))
		last = now
		switch {
		case to < math.MaxInt64:
			if busy = false; time.Since(busyAt) < paced {
				continue
			}
		case !busy: // a single busy tick may be the answer to one query
			busy = true
			continue
		default:
			busyAt = time.Now()
		}
		// A new limit stops the world for a moment.
		if to < set-little/4 || to-little/4 > set {
			debug.SetMemoryLimit(to)
			set = to
		}
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
	if allocated > max(little, s.live/2) {
		return math.MaxInt64
	}
	return s.live + s.around + max(little, allocated)
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
