package httpapi

import (
	"net/http"
	"time"
)

// Handler returns the handler of all requests, with all of its protections.
func (s *Server) Handler() http.Handler { return s.handler }

// SetMaxSearched lowers how many entries one call reads. Cached answers are computed again.
func (s *Server) SetMaxSearched(n int64) {
	s.limits.searched = n
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	s.answers.kept = nil
}

// SetMaxTally raises how long one call counts.
func (s *Server) SetMaxTally(d time.Duration) { s.limits.tally = d }

// SetMaxFetchTime raises how long a list reads large records.
func (s *Server) SetMaxFetchTime(d time.Duration) { s.limits.fetch = d }

// ReadWithin lowers how long a viewer of events may read nothing.
func (s *Server) ReadWithin(d time.Duration) { s.events.Times.Read = d }

// AskWhoEvery has the permission of a viewer of events checked more often.
func (s *Server) AskWhoEvery(d time.Duration) { s.events.Times.Ping, s.events.Times.Recheck = d, d }

// Wake has what viewers watch computed now.
func (s *Server) Wake() { s.events.Wake() }

// WrapHandler puts a handler before the whole server.
func (s *Server) WrapHandler(wrap func(http.Handler) http.Handler) { s.handler = wrap(s.handler) }

// Routes lists what is registered, as "GET /path/:parameter".
func (s *Server) Routes() (all []string) {
	for _, r := range s.routes {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// OpenAPI returns the contract as it is served.
func OpenAPI() []byte { return openAPI }
