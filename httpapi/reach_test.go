package httpapi

// SetMaxSearched lowers how many entries one call looks at.
func (s *Server) SetMaxSearched(n int64) { s.maxSearched = n }
