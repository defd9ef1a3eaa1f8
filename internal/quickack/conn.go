package quickack

import (
	"net"
	"sync/atomic"
	"syscall"
)

// Conn is a TCP connection that can acknowledge immediately what it reads.
type Conn struct {
	net.Conn
	raw   syscall.RawConn // nil if it is no TCP connection
	begun atomic.Bool
}

// New returns conn as a Conn.
func New(conn net.Conn) *Conn {
	c := &Conn{Conn: conn}
	if tcp, ok := conn.(*net.TCPConn); ok {
		c.raw, _ = tcp.SyscallConn()
	}
	return c
}

// Begin makes every read from now on acknowledge immediately.
func (c *Conn) Begin() { c.begun.Store(true) }

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.raw != nil && c.begun.Load() {
		_ = c.raw.Control(acknowledge) // fails only if the connection is closed
	}
	return n, err
}
