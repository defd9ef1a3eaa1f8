//go:build race

package scheduler

// slow reduces the runs of the core's property tests. They run in one goroutine, where the race
// detector finds nothing and takes six times as long. `make test-properties` runs them without it.
const slow = true
