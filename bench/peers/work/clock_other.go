//go:build !linux

package work

import "time"

// Now returns a time in nanoseconds. `make bench-peers` needs Linux.
func Now() int64 { return time.Now().UnixNano() }
