package broker

import (
	"net"
	"sync/atomic"
	"time"
)

// socket is the connection's TCP socket, with the two habits of amqp091-go mended that can hang or kill a healthy client, and one that makes
// it slow.
//
// The library moves its read deadline from the goroutine that also writes heartbeats. While the broker does not read (an alarm), that
// goroutine is stuck in a write, the deadline stands still, and a living connection is dropped. Here every read sets its own.
//
// The library ends a dead connection under a lock that a stuck write holds, and closes the socket last: neither ever ends. Here a
// socket that cannot be read any more is closed at once, which ends the write.
//
// The library writes each message by itself, which costs both sides more than the message. Here messages can go out together.
type socket struct {
	net.Conn
	silence atomic.Int64 // nanoseconds without a byte after which the peer is taken for dead; 0 during the handshake
	outbox  *outbox
	first   atomic.Pointer[string] // how what came first begins; nil: nothing came yet
}

// gatherFor is how long what is written together with more waits at most.
const gatherFor = 2 * time.Millisecond

func newSocket(conn net.Conn) *socket { return &socket{Conn: conn, outbox: newOutbox(conn, gatherFor)} }

func (s *socket) Write(p []byte) (int, error) { return s.outbox.write(p) }

func (s *socket) Read(p []byte) (int, error) {
	if d := s.silence.Load(); d > 0 {
		if err := s.Conn.SetReadDeadline(time.Now().Add(time.Duration(d))); err != nil {
			return 0, err
		}
	}
	n, err := s.Conn.Read(p)
	if n > 0 && s.first.Load() == nil {
		first := string(p[:min(n, len(plainAMQP))])
		s.first.Store(&first)
	}
	if err != nil {
		s.Conn.Close()
	}
	return n, err
}

// begunWith returns how what came first begins; "" if nothing came.
func (s *socket) begunWith() string {
	if first := s.first.Load(); first != nil {
		return *first
	}
	return ""
}

// SetReadDeadline is what the library's heartbeater calls.
func (s *socket) SetReadDeadline(t time.Time) error {
	if s.silence.Load() > 0 {
		return nil
	}
	return s.Conn.SetReadDeadline(t)
}

// limitSilence begins the watch, once the handshake is done and the heartbeat agreed. Half a heartbeat of grace is what the broker
// gives us too.
func (s *socket) limitSilence(heartbeat time.Duration) {
	s.silence.Store(int64(heartbeat + heartbeat/2))
}
