package streams

import "sync"

// steps remembers, for each stream, where the broker closed the connection instead of delivering.
//
// RabbitMQ cannot convert everything that a stream may hold to AMQP 0-9-1: where it fails, the consumer's connection dies, every time.
// A reader that dies twice at one offset steps over it, and one further at each death, until it comes through.
type steps struct {
	mu      sync.Mutex
	streams map[string]*step
}

func (s *steps) of(stream string) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = make(map[string]*step)
	}
	if s.streams[stream] == nil {
		s.streams[stream] = &step{}
	}
	return s.streams[stream]
}

// step is what is known about one stream: the connection died deaths times when at was to be read. From the second death on, the
// offsets at to through are stepped over.
type step struct {
	mu      sync.Mutex
	at      int64
	through int64
	deaths  int
}

const deathsToStep = 2

func (s *step) stepping() bool { return s.deaths >= deathsToStep }

// died notes a death when next was to be read, and tells whether to go on behind it.
func (s *step) died(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = max(next, 0)
	switch {
	case s.stepping() && next == s.through+1:
		s.through++
	case s.deaths > 0 && next == s.at:
		s.deaths++
	default:
		s.at, s.through, s.deaths = next, next, 1
	}
	return s.stepping()
}

// start gives where to begin so as to read from next on.
func (s *step) start(next int64) int64 {
	if s.covers(max(next, 0)) {
		return s.last() + 1
	}
	return next
}

// covers tells whether offset is stepped over.
func (s *step) covers(offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stepping() && s.at <= offset && offset <= s.through
}

// near tells whether something unreadable is to be expected at next or soon after.
func (s *step) near(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths > 0 && next <= s.through+1
}

// passed tells what was stepped over between a reader's position and the record that it got.
func (s *step) passed(next, offset int64) (first, last int64, stepped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.through, s.stepping() && next == s.through+1 && offset > s.through
}

func (s *step) first() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *step) last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.through
}
