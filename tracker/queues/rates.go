package queues

import (
	"time"

	"github.com/millrace-jobs/millrace/broker"
)

const (
	ratesOver  = 20 * time.Second // what rates are means over
	ratesAfter = 5 * time.Second  // brokers bring their counters up to date that often: over less a rate would jump
)

// trail is what was seen of a queue.
type trail struct {
	stuck  time.Time // since then it was neither empty nor served
	points []point
	counts []counts
}

type point struct {
	at    time.Time
	ready int64
}

// counts are a queue's counters at a moment.
type counts struct {
	at                          time.Time
	published, delivered, acked int64
}

// rates puts rates made of the counters in place of the broker's, which RabbitMQ gives as 0 unless
// its statistics interval is the one that its samples are made for. Until enough has been seen the
// broker's stay.
func (t *trail) rates(now time.Time, q *broker.QueueInfo) {
	c := counts{now, q.Published, q.Delivered, q.Acked}
	if n := len(t.counts); n > 0 && t.counts[n-1].after(&c) {
		t.counts = nil // the queue or the broker is another
	}
	t.counts = append(t.counts, c)
	for len(t.counts) > 2 && now.Sub(t.counts[1].at) >= ratesOver {
		t.counts = t.counts[1:]
	}
	first := t.counts[0]
	since := now.Sub(first.at)
	if since < ratesAfter || c == (counts{at: now}) {
		return
	}
	rate := func(from, to int64) float64 { return float64(to-from) / since.Seconds() }
	q.PublishRate, q.DeliverRate, q.AckRate = rate(first.published, c.published), rate(first.delivered, c.delivered), rate(first.acked, c.acked)
}

// after reports whether counters went back.
func (c *counts) after(o *counts) bool {
	return c.published > o.published || c.delivered > o.delivered || c.acked > o.acked
}

// delivered reports whether jobs were taken since the look before.
func (t *trail) delivered(q *broker.QueueInfo) bool {
	if n := len(t.counts); n > 1 && q.Delivered > 0 {
		return q.Delivered > t.counts[n-2].delivered
	}
	return q.DeliverRate > 0
}
