package auth

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Hosts are the names under which requests may come.
type Hosts map[string]bool

// NewHosts returns the names of this machine, of an address, of a certificate, and more.
func NewHosts(addr string, certificate *tls.Config, more []string) Hosts {
	all := Hosts{"localhost": true, "127.0.0.1": true, "::1": true}
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
		all[hostName(host)] = true
	}
	for _, h := range append(certificateNames(certificate), more...) {
		all[hostName(h)] = true
	}
	return all
}

// has reports whether a Host header has one of the names, or one that a wildcard stands for.
func (h Hosts) has(host string) bool {
	name := hostName(host)
	_, parent, _ := strings.Cut(name, ".")
	return h[name] || parent != "" && h["*."+parent]
}

// only refuses requests under other names. A web page can point its own name to 127.0.0.1 (DNS
// rebinding), and then its requests are of the same origin.
func (h Hosts) only(next http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.has(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, r)
	})
}

// Guard returns a handler of the API that refuses requests under names that are not expected.
func (h Hosts) Guard(next http.Handler) http.Handler {
	return h.only(next, func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.New(http.StatusForbidden,
			"the host name %q is not expected here: use one of those of --http-addr, the certificate or --http-hosts", problem.Shorten(r.Host)))
	})
}

// OnlyExpectedHosts returns a handler for a port beside the API's. It protects next from web pages
// as the API is protected: requests must come under the names of this machine, of addr, or more.
func OnlyExpectedHosts(addr string, more []string, next http.Handler) http.Handler {
	return NewHosts(addr, nil, more).only(next, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the host name is not expected here: use one of this machine's, that of the address, or one of --http-hosts", http.StatusForbidden)
	})
}

// hostName returns a Host header's value without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
