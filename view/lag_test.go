package view

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Records arrive a moment after they are stored. The age stays small when our clock is set, or the
// broker's, or that of a machine that both share.
func TestSetClocksAreNoLag(t *testing.T) {
	const usual, jitter = 20 * time.Millisecond, 5 * time.Millisecond
	begun := time.Unix(1_800_000_000, 0)
	for name, set := range map[string]func(at int) (ours, brokers time.Duration){
		"none":    func(int) (time.Duration, time.Duration) { return 0, 0 },
		"ours":    func(at int) (time.Duration, time.Duration) { return steps[at%len(steps)], 0 },
		"brokers": func(at int) (time.Duration, time.Duration) { return 0, steps[at%len(steps)] },
		"both":    func(at int) (time.Duration, time.Duration) { return steps[at%len(steps)], steps[at%len(steps)] },
	} {
		t.Run(name, func(t *testing.T) {
			var a lagEstimator
			for i := range 100 {
				ours, brokers := set(i / 10)
				since := time.Duration(i) * time.Second
				delay := usual + time.Duration(i%3)*jitter
				a.note(begun.Add(since+ours), since, begun.Add(since-delay+brokers))
				require.LessOrEqual(t, a.late, 2*jitter, "record %d", i)
			}
		})
	}
}

var steps = []time.Duration{0, time.Hour, -time.Hour, 0, time.Minute, -time.Minute, 10 * time.Second}

func TestDelayIsLag(t *testing.T) {
	var a lagEstimator
	begun := time.Unix(1_800_000_000, 0)
	for i := range 60 {
		since := time.Duration(i) * time.Second
		// Records are folded half as fast as they are stored.
		a.note(begun.Add(since), since, begun.Add(since/2))
	}
	require.Equal(t, 59*time.Second/2, a.late)
	a.note(begun.Add(time.Minute), time.Minute, time.Time{}) // a broker that reports no times
	require.Equal(t, 59*time.Second/2, a.late)
}
