package streams

const (
	firstPrefetch = 64   // while the size of the records is unknown
	leastPrefetch = 4    // even for the largest records
	mostPrefetch  = 5000 // more makes no broker faster
)

// pace chooses the prefetch so that the records in flight have about as many bytes as a reader may
// read ahead. RabbitMQ fixes the prefetch of a stream consumer when it subscribes. So a new
// prefetch needs a new subscription.
type pace struct {
	budget   int64
	prefetch int
	mean     float64 // of the sizes of the last records
	seen     int     // records with this prefetch
}

func newPace(budget int64) *pace { return &pace{budget: budget, prefetch: firstPrefetch} }

// observe adds the size of a record. It reports whether it is worth subscribing again with the new
// prefetch.
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
