package broker

import (
	"net"
	"sync/atomic"
	"time"
)

// socket is the connection's TCP socket, with the two habits of amqp091-go mended that can hang or kill a healthy client.
//
// The library moves its read deadline from the goroutine that also writes heartbeats. While the broker does not read (an alarm), that
// goroutine is stuck in a write, the deadline stands still, and a living connection is dropped. Here every read sets its own.
//
// The library ends a dead connection under a lock that a stuck write holds, and closes the socket last: neither ever ends. Here a
// socket that cannot be read any more is closed at once, which ends the write.
type socket struct {
	net.Conn
	silence atomic.Int64 // nanoseconds without a byte after which the peer is taken for dead; 0 during the handshake
}

func (s *socket) Read(p []byte) (int, error) {
	if d := s.silence.Load(); d > 0 {
		if err := s.Conn.SetReadDeadline(time.Now().Add(time.Duration(d))); err != nil {
			return 0, err
		}
	}
	n, err := s.Conn.Read(p)
	if err != nil {
		s.Conn.Close()
	}
	return n, err
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
