package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// corsMaxAge is how long a browser may remember what a page may do, in seconds.
const corsMaxAge = "1800"

// CheckOrigins tells whether all are origins, such as "https://ops.example:8443". There is no "*": a page that acts is one that is known.
func CheckOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err == nil {
			err = http.NewCrossOriginProtection().AddTrustedOrigin(o)
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("httpapi: %q is no origin: it has the form https://ops.example", o)
		}
	}
	return nil
}

// cors lets pages of the origins that are listed read answers.
func (s *Server) cors(next http.Handler) http.Handler {
	if len(s.cfg.CORSOrigins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		h.Add("Vary", "Origin")
		if !slices.Contains(s.cfg.CORSOrigins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", headerNext+", "+headerRequestID+", "+headerTiming+", Millrace-Version, Retry-After")
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+headerReason+", "+headerRequestID+", Idempotency-Key, Last-Event-ID")
		h.Set("Access-Control-Max-Age", corsMaxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}
