//go:build race

package tracker

// slow has the long tests do less: Pebble checks itself under the race detector, and takes forty
// times as long.
const slow = true
