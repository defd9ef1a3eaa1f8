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

// step is what is known about one stream: the connection died deaths times when at was to be read. From the second death on, a reader
// that dies there goes on behind through. It always tries first: the stream may be another one of the same name by now.
type step struct {
	mu      sync.Mutex
	at      int64
	through int64
	deaths  int
}

const (
	deathsToStep = 2

	// nearness is how far ahead of a reader's position the broker may have died: a whole prefetch, and a chunk.
	nearness = 2 * mostPrefetch
)

// died notes a death when next was to be read, and tells whether to go on behind through.
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

// read notes that what stands at offset was read: if the reader died there before, it was for another reason.
func (s *step) read(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaths > 0 && s.at <= offset && offset <= s.through {
		s.deaths = 0
	}
}

// near tells whether a death is to be expected at next or soon after.
func (s *step) near(next int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths > 0 && next <= s.through+1 && next > s.at-nearness
}

// behind tells whether a reader that is to read next has just stepped over something.
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
