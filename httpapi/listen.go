package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrNotLocal says that an address can be reached from other machines.
var ErrNotLocal = errors.New("not a loopback address")

// Listen listens on a loopback address and refuses any other.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("httpapi: address %q: %w: it has the form 127.0.0.1:15680", addr, err)
	}
	if !isLocal(host) {
		return nil, notLocal(addr)
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("httpapi: listen: %w", err)
	}
	if err := checkLocal(l.Addr()); err != nil { // a name that does not mean what it says
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func isLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func checkLocal(addr net.Addr) error {
	switch a := addr.(type) {
	case *net.TCPAddr:
		if !a.IP.IsLoopback() {
			return notLocal(addr.String())
		}
	case *net.UnixAddr:
	default:
		return notLocal(addr.String())
	}
	return nil
}

func notLocal(addr string) error {
	return fmt.Errorf("httpapi: listen on %q: %w: nobody is asked who they are, so only this machine may connect: use 127.0.0.1, [::1] or localhost",
		addr, ErrNotLocal)
}

// expectedHosts are the names under which requests may come.
func expectedHosts(addr string, more []string) map[string]bool {
	hosts := map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true}
	if host, _, err := net.SplitHostPort(addr); err == nil && isLocal(host) {
		hosts[host] = true
	}
	for _, h := range more {
		hosts[hostName(h)] = true
	}
	return hosts
}

// hostName is a Host header's value without its port.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
