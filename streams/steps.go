package streams

import "sync"

// steps remembers, for each stream, where the broker closed the connection instead of delivering.
//
// RabbitMQ cannot convert everything that a stream may hold to AMQP 0-9-1. At such a record it
// closes the consumer's connection, every time. A reader that dies twice at one offset steps over
// it. At each further death it steps over one more offset, until it comes through.
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

// step is the state of one stream: deaths counts how often a reader died when it was to read at.
// From the second death on, a reader that dies there continues behind through. It always tries
// first, because by now there may be another stream of the same name.
type step struct {
	mu      sync.Mutex
	at      int64
	through int64
	deaths  int
}

const (
	deathsToStep = 2

	// nearness is how far ahead of the reader's position the broker may have failed: a whole
	// prefetch and a chunk.
	nearness = 2 * mostPrefetch
)

// died records a death at next, and reports whether to continue behind through.
func (s *step) died(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = max(next, 0)
	switch {
	case s.known() && next == s.through+1:
		s.through++
	case s.deaths > 0 && s.at <= next && next <= s.through:
		s.deaths++
	default:
		s.at, s.through, s.deaths = next, next, 1
	}
	return s.known()
}

func (s *step) known() bool { return s.deaths >= deathsToStep }

// read records that offset was read. If the reader died there before, this record was not the
// cause.
func (s *step) read(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaths > 0 && s.at <= offset && offset <= s.through {
		s.deaths = 0
	}
}

// near reports whether a death is likely at next or soon after.
func (s *step) near(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths > 0 && next <= s.through+1 && next > s.at-nearness
}

// behind reports whether a reader at next has just stepped over a record.
func (s *step) behind(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known() && next == s.through+1
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
