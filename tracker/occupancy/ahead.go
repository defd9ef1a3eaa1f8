package occupancy

// What is in a queue already can neither be overtaken nor held back. So the leader keeps few jobs
// there.

const (
	usualAhead = 1000

	// UnservedAhead is how many messages a queue that no one serves has before it gets no more
	// limited jobs.
	UnservedAhead = 10
)

// GovernedAhead returns how many jobs of a governed queue may be delivered and not ended, unless
// its definition says it. reported reports whether workers say how many jobs they run at once.
func GovernedAhead(workers int64, reported bool) int64 {
	if !reported {
		return usualAhead
	}
	return max(2*workers, 1)
}
