package streams

const (
	firstPrefetch = 64   // while nothing is known about the records' size
	leastPrefetch = 4    // even of the largest
	mostPrefetch  = 5000 // more makes no broker faster
)

// pace chooses the prefetch, so that the records under way are about as many bytes as we may read ahead. RabbitMQ fixes a stream
// consumer's prefetch when it begins, so that another one means another subscription.
type pace struct {
	budget   int64
	prefetch int
	mean     float64 // of the last records' sizes
	seen     int     // with this prefetch
}

func newPace(budget int64) *pace { return &pace{budget: budget, prefetch: firstPrefetch} }

// observe takes a record's size into account, and tells whether it is worth while to subscribe again with the new prefetch.
func (p *pace) observe(size int) bool {
	p.seen++
	weight := 1 / float64(min(p.seen, firstPrefetch))
	p.mean += (float64(size) - p.mean) * weight
	want := int(float64(p.budget) / (p.mean + 1))
	want = min(max(want, leastPrefetch), mostPrefetch)
	tooSmall := p.prefetch*2 <= want && p.seen >= firstPrefetch
	tooLarge := p.prefetch >= 2*want
	if !tooSmall && !tooLarge {
		return false
	}
	p.prefetch, p.seen = want, firstPrefetch
	return true
}
