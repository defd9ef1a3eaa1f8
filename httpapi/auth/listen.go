package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrNotLocal is returned for an address that other machines can reach, and must not.
var ErrNotLocal = errors.New("not a loopback address")

// Exposure is what lets users of other machines connect. The zero value lets none.
type Exposure struct {
	Auth        string // the mode; ModeNone authenticates no users
	TLS         bool
	BehindProxy bool // a proxy does both
}

func (e Exposure) allowed() bool { return e.BehindProxy || e.TLS && e.Auth != ModeNone }

// Listen listens on a loopback address; on others only where users are authenticated, over TLS.
func Listen(ctx context.Context, addr string, e Exposure) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("httpapi: address %q: %w: it has the form 127.0.0.1:15680", addr, err)
	}
	if !isLocal(host) && !e.allowed() {
		return nil, e.notLocal(addr)
	}
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("httpapi: listen: %w", err)
	}
	if err := e.Check(addr, l.Addr()); err != nil { // a name that does not mean what it says
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

// IsLocalAddr reports whether only this machine can connect to host:port.
func IsLocalAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLocal(host)
}

// Check returns an error if an address must not be listened on. The error calls it by its name.
func (e Exposure) Check(name string, addr net.Addr) error {
	if e.allowed() {
		return nil
	}
	switch a := addr.(type) {
	case *net.TCPAddr:
		if !a.IP.IsLoopback() {
			return e.notLocal(name)
		}
	case *net.UnixAddr:
	default:
		return e.notLocal(name)
	}
	return nil
}

func (e Exposure) notLocal(addr string) error {
	missing, set, proxy := "TLS", "--tls-cert and --tls-key", "terminates TLS"
	if e.Auth == ModeNone {
		missing, set, proxy = "authentication", "--auth to broker or token", "authenticates users"
		if !e.TLS {
			missing, set, proxy = missing+" and TLS", set+", --tls-cert and --tls-key", proxy+" and terminates TLS"
		}
	}
	return fmt.Errorf("refusing to listen on %s (%w) without %s: set %s, or --behind-proxy if a proxy %s; or listen on 127.0.0.1",
		addr, ErrNotLocal, missing, set, proxy)
}
