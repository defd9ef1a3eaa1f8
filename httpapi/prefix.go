package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

var prefixForm = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// CheckPrefix tells whether a prefix can stand before all paths.
func CheckPrefix(prefix string) error {
	if prefix != "" && !prefixForm.MatchString(prefix) {
		return fmt.Errorf("httpapi: %q is no prefix of paths: it has the form /millrace", prefix)
	}
	return nil
}

// probes are also there without the prefix: who asks for them does not come through the proxy that adds it.
var probes = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// prefixed takes the prefix off.
func (s *Server) prefixed(next http.Handler) http.Handler {
	prefix := s.cfg.Prefix
	if prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := strings.CutPrefix(r.URL.EscapedPath(), prefix+"/")
		switch {
		case found:
			u := *r.URL
			u.RawPath, u.Path = "/"+path, strings.TrimPrefix(r.URL.Path, prefix)
			sent := new(http.Request)
			*sent = *r
			sent.URL = &u
			next.ServeHTTP(w, sent)
		case r.URL.Path == prefix && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			http.Redirect(w, r, prefix+"/", http.StatusPermanentRedirect)
		case probes[r.URL.Path]:
			next.ServeHTTP(w, r)
		default:
			problem.Write(w, r, problem.NoSuchPath())
		}
	})
}

// servers is the contract with the prefix in it.
func (s *Server) servers() []byte {
	return bytes.Replace(openAPI, []byte("servers: [{url: /}]"), []byte("servers: [{url: "+s.cfg.Prefix+"/}]"), 1)
}
