package main

import (
	"slices"
	"time"
)

// silence is a time in which a node answered nothing that a sidecar published on one channel,
// although it should have: a record for a stream that is needed, or jobs for several queues. While
// that lasts, no leader can deliver anything.
type silence struct {
	node     int
	from, to time.Time
	stream   bool
	queues   []string
}

// unanswered are the publishes on a channel that have no answer, and count as a silence.
type unanswered struct {
	waits map[uint64]published // by tag
	since time.Time            // when the silence began; zero if there is none
}

// published is a record for a stream, or a job for a queue.
type published struct {
	queue string // empty: a record for a stream
	at    time.Time
}

// sent notes a publish.
func (u *unanswered) sent(tag uint64, p published) {
	if u.waits == nil {
		u.waits = map[uint64]published{}
	}
	u.waits[tag] = p
	if u.since.IsZero() && u.counts(p.at) {
		u.since = p.at
	}
}

// answered notes an answer to some publishes. It returns the silence that ends with it. If only
// later publishes are answered, the broker was not silent: it has forgotten the others.
func (u *unanswered) answered(now time.Time, is func(tag uint64) bool) (s silence, ended bool) {
	stream, queues := u.openSince(u.since)
	for tag, p := range u.waits {
		if is(tag) {
			ended = ended || !p.at.After(u.since)
			delete(u.waits, tag)
		}
	}
	if ended = ended && !u.since.IsZero(); ended {
		s = silence{from: u.since, to: now, stream: stream, queues: queues}
	}
	u.since = time.Time{}
	if u.counts(now) {
		u.since = now
	}
	return s, ended
}

// counts reports whether what was published up to a time, and is open, counts as a silence.
func (u *unanswered) counts(until time.Time) bool {
	stream, queues := u.openSince(until)
	return stream || len(queues) > 1
}

// openSince returns what was published up to a time and has no answer.
func (u *unanswered) openSince(until time.Time) (stream bool, queues []string) {
	for _, p := range u.waits {
		switch {
		case p.at.After(until):
		case p.queue == "":
			stream = true
		case !slices.Contains(queues, p.queue):
			queues = append(queues, p.queue)
		}
	}
	return stream, queues
}

// shortSilence is what is not kept.
const shortSilence = 300 * time.Millisecond

// keep notes a silence. That of a tap that has been frozen is not the broker's. The caller holds
// t.mu.
func (c *connection) keep(s silence) {
	if s.to.Sub(s.from) >= shortSilence && !c.cut.Load() {
		s.node = c.node
		c.truth.silences = append(c.truth.silences, s)
	}
}

// silence returns the longest silence between two times. Nodes and queues that a fault hits do not
// count: a leader must do without them. The caller holds t.mu.
func (t *truth) silence(from, to time.Time, hit map[string]bool) (longest time.Duration) {
	for _, s := range t.silences {
		others := slices.DeleteFunc(slices.Clone(s.queues), func(q string) bool { return hit[q] })
		if !hit[classic(s.node)] && (s.stream || len(others) > 1) {
			longest = max(longest, minTime(s.to, to).Sub(maxTime(s.from, from)))
		}
	}
	return longest
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
