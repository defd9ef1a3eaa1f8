package metrics

// maxAttempt is the last attempt with a count of its own. It also counts all later ones, so a row
// stays small.
const maxAttempt = 100

// attempts has how many jobs came to their end at their first attempt, how many at their second,
// and so on.
type attempts []int64

// add counts jobs whose last attempt was the nth.
func (a attempts) add(nth, jobs int64) attempts {
	n := int(min(nth, maxAttempt))
	if n > len(a) {
		a = append(a, make(attempts, n-len(a))...)
	}
	a[n-1] += jobs
	return a
}

func (a attempts) merge(o []int64) attempts {
	for i, jobs := range o {
		a = a.add(int64(i+1), jobs)
	}
	return a
}
