package main

import "sync"

// mostSaid is how many bytes of the programs' output are kept for a trial.
const mostSaid = 32 << 10

// said keeps the end of what the programs of a trial print. It is shown if the trial fails, because
// the same failure may not come again for hours.
type said struct {
	mu   sync.Mutex
	text []byte
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	s.text = s.text[max(len(s.text)-mostSaid, 0):]
	return len(p), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}
