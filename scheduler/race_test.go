//go:build race

package scheduler

// slow has the properties of the core be tried less often: they run in one goroutine, where the
// race detector finds nothing and takes six times as long. `make test-properties` tries them
// without it.
const slow = true
