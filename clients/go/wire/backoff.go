package wire

import "time"

// Backoff is how long a job waits after its attempt number count (from 0) failed: count⁴ + 15 + a random part, in seconds. random
// gives a number from 0 to below n.
func Backoff(count int, random func(n int) int) time.Duration {
	c := min(max(count, 0), 1000) // beyond it the fourth power would not fit a duration
	seconds := c*c*c*c + 15 + random(30*(c+1)+1)
	return min(time.Duration(seconds), maxBackoff) * time.Second
}

// maxBackoff is a hundred years, in seconds.
const maxBackoff = 100 * 365 * 24 * 3600
