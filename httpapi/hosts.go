package httpapi

import (
	"net"
	"net/http"
	"strings"
)

// hosts are the names under which requests may come.
type hosts map[string]bool

func expectedHosts(addr string, more []string) hosts {
	all := hosts{"localhost": true, "127.0.0.1": true, "::1": true}
	if host, _, err := net.SplitHostPort(addr); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
		all[hostName(host)] = true
	}
	for _, h := range more {
		all[hostName(h)] = true
	}
	return all
}

// expect tells whether a Host header has one of the names, or one that a certificate's wildcard stands for.
func (h hosts) expect(host string) bool {
	name := hostName(host)
	_, parent, _ := strings.Cut(name, ".")
	return h[name] || parent != "" && h["*."+parent]
}

// only refuses requests under other names. A web page can make its own name mean 127.0.0.1 (DNS rebinding), and then its requests are of
// the same origin.
func (h hosts) only(next http.Handler, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.expect(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		refuse(w, r)
	})
}

// OnlyExpectedHosts keeps web pages from what a port beside the API's answers, as they are kept from the API: requests come under the names of
// this machine, of addr, or under more.
func OnlyExpectedHosts(addr string, more []string, next http.Handler) http.Handler {
	return expectedHosts(addr, more).only(next, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the host name is not expected here: use one of this machine's, that of the address, or one of --http-hosts", http.StatusForbidden)
	})
}

// hostName is a Host header's value without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
