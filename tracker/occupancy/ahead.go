package occupancy

// What is in a queue already can neither be overtaken nor held back. So the leader keeps few jobs
// there: enough for the workers of the queue to be busy.

const (
	usualAhead = 1000

	// LeastAhead is how many jobs with a rate a queue may have at least. A queue without consumers
	// gets no more of them while it has as many.
	LeastAhead = 10
)

// GovernedAhead returns how many jobs of a governed queue may be delivered and not ended, unless
// its definition says it. said reports whether workers say how many jobs they run at once.
func GovernedAhead(workers int64, said bool) int64 {
	if !said {
		return usualAhead
	}
	return max(2*workers, 1)
}

// RatedAhead returns the same of jobs that a rate counts, 0 if there may be any number.
func RatedAhead(workers int64, said bool) int64 {
	if !said {
		return 0
	}
	return max(2*workers, LeastAhead)
}
