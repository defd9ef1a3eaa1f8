package httpapi

import (
	"net/http"
	"time"
)

// SetMaxSearched lowers how many entries one call looks at.
func (s *Server) SetMaxSearched(n int64) { s.maxSearched = n }

// SetMaxTally raises how long one call counts on.
func (s *Server) SetMaxTally(d time.Duration) { s.maxTally = d }

// SetMaxFetchTime raises how long a list reads large records.
func (s *Server) SetMaxFetchTime(d time.Duration) { s.maxFetchTime = d }

// WrapHandler puts something before the whole server.
func (s *Server) WrapHandler(wrap func(http.Handler) http.Handler) { s.handler = wrap(s.handler) }

// Routes lists what is registered, as "GET /path/:parameter".
func (s *Server) Routes() (all []string) {
	for _, r := range s.table() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// OpenAPI is the contract as it is served.
func OpenAPI() []byte { return openAPI }
