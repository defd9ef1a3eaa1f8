package wire

import "time"

// Backoff returns how long a job waits after its attempt number count (from 0) failed: count⁴ + 15
// seconds, and a random part. random(n) returns a number from 0 to n-1.
func Backoff(count int, random func(n int) int) time.Duration {
	c := min(max(count, 0), 1000) // the fourth power of more would not fit a duration
	seconds := c*c*c*c + 15 + random(30*(c+1)+1)
	return min(time.Duration(seconds), maxBackoff) * time.Second
}

// maxBackoff is a hundred years, in seconds.
const maxBackoff = 100 * 365 * 24 * 3600
