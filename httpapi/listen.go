package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrNotLocal says that an address can be reached from other machines, and what it takes for that is missing.
var ErrNotLocal = errors.New("not a loopback address")

// Exposure is what lets others than this machine's users connect. The zero value lets nobody.
type Exposure struct {
	Auth        string // none asks nobody who they are
	TLS         bool
	BehindProxy bool // a proxy sees to both
}

func (c *Config) exposure() Exposure { return Exposure{c.Auth, c.TLS != nil, c.BehindProxy} }

func (e Exposure) allowed() bool { return e.BehindProxy || e.TLS && e.Auth != AuthNone }

// Listen listens on a loopback address, and on any other only where whoever connects is asked who they are, over TLS.
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
	if err := e.check(addr, l.Addr()); err != nil { // a name that does not mean what it says
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

// localAddr tells whether only this machine can connect to host:port.
func localAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLocal(host)
}

func (e Exposure) check(name string, addr net.Addr) error {
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
	if e.Auth == AuthNone {
		missing, set, proxy = "authentication", "--auth to broker or token", "authenticates users"
		if !e.TLS {
			missing, set, proxy = missing+" and TLS", set+", --tls-cert and --tls-key", proxy+" and terminates TLS"
		}
	}
	return fmt.Errorf("refusing to listen on %s (%w) without %s: set %s, or --behind-proxy if a proxy %s; or listen on 127.0.0.1",
		addr, ErrNotLocal, missing, set, proxy)
}
