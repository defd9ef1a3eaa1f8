package httpapi

import (
	"net/http"
)

// routeEscaped has the router see every path as it was sent. Left alone, net/http gives the escaped path only where it differs from
// its own way of escaping, so that a%2Fb and a%252Fb become the same parameter.
func routeEscaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.RawPath = r.URL.EscapedPath()
		sent := new(http.Request)
		*sent = *r
		sent.URL = &u
		next.ServeHTTP(w, sent)
	})
}
