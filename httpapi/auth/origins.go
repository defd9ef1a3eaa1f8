package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// CORS headers. A browser may remember what a page may do for corsMaxAge seconds.
const (
	corsMaxAge  = "1800"
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsAccepts = "Authorization, Content-Type, X-Reason, X-Request-Id, Idempotency-Key, Last-Event-ID"
	corsExposes = "Millrace-Next, X-Request-Id, Server-Timing, Millrace-Version, Retry-After"
)

// Origins decides which web pages may use the API: those of its own origin, and of listed ones.
type Origins struct {
	listed     []string
	protection *http.CrossOriginProtection
}

// CheckOrigins returns an error unless all are origins, such as "https://ops.example:8443". There
// is no "*": only pages of known origins may act.
func CheckOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err == nil {
			err = http.NewCrossOriginProtection().AddTrustedOrigin(o)
		}
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("httpapi: %q is not an origin: write it like https://ops.example", o)
		}
	}
	return nil
}

// NewOrigins returns the rules for a list that CheckOrigins accepts.
func NewOrigins(listed []string) *Origins {
	o := &Origins{listed, http.NewCrossOriginProtection()}
	o.protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.New(http.StatusForbidden, "a browser sent this for another site, which may not act here"))
	}))
	for _, origin := range listed {
		_ = o.protection.AddTrustedOrigin(origin) // CheckOrigins has read them
	}
	return o
}

// Guard returns a handler that refuses requests that a browser sends for other sites, and lets
// pages of the listed origins read answers (CORS).
func (o *Origins) Guard(next http.Handler) http.Handler {
	next = o.protection.Handler(next)
	if len(o.listed) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, origin := w.Header(), r.Header.Get("Origin")
		h.Add("Vary", "Origin")
		if !slices.Contains(o.listed, origin) {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", corsExposes)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsAccepts)
		h.Set("Access-Control-Max-Age", corsMaxAge)
		w.WriteHeader(http.StatusNoContent)
	})
}

// CheckRead refuses a read that a browser sends for another site. It is for WebSockets: a browser
// sends the user's cookies with them, and lets the page read the answers.
func (o *Origins) CheckRead(r *http.Request) error {
	act := r.Clone(r.Context())
	act.Method = http.MethodPost // reads pass, as a page cannot read other answers
	if o.protection.Check(act) != nil {
		return problem.New(http.StatusForbidden, "a browser sent this for another site, which may not look here")
	}
	return nil
}
