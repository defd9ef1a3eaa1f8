package httpapi

import "time"

// SetMaxSearched lowers how many entries one call looks at.
func (s *Server) SetMaxSearched(n int64) { s.maxSearched = n }

// SetMaxTally raises how long one call counts on.
func (s *Server) SetMaxTally(d time.Duration) { s.maxTally = d }
