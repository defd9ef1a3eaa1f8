package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/millrace-jobs/millrace/internal/hosts"
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

// AddrOf returns the address of a listener, as Listen takes it.
func AddrOf(l net.Listener) string {
	if addr, ok := l.Addr().(*net.UnixAddr); ok {
		return "unix:" + addr.Name
	}
	return l.Addr().String()
}

// Listen listens on a loopback address or a socket in the file system; on other addresses only
// where users are authenticated, over TLS.
func Listen(ctx context.Context, addr string, e Exposure) (net.Listener, error) {
	if path, ok := hosts.SocketPath(addr); ok {
		return listenAt(ctx, path)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("httpapi: address %q: %w: it has the form 127.0.0.1:15680 or unix:/path", addr, err)
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

// listenAt listens on a socket in the file system. Who may connect is up to the umask and the
// directory. A socket on which no process listens, because it was killed, is replaced.
func listenAt(ctx context.Context, path string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isAbandoned(ctx, path) {
		if err = os.Remove(path); err == nil {
			l, err = c.Listen(ctx, "unix", path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("httpapi: listen: %w", err)
	}
	return l, nil
}

func isAbandoned(ctx context.Context, path string) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func isLocal(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// IsLocalAddr reports whether only this machine can connect to an address.
func IsLocalAddr(addr string) bool {
	if _, ok := hosts.SocketPath(addr); ok {
		return true
	}
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLocal(host)
}

// IsLocal reports whether only this machine can connect to a listener.
func IsLocal(l net.Listener) bool { return IsLocalAddr(AddrOf(l)) }

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
