package broker

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/internal/quickack"
)

// socket is the TCP socket of a connection. It works around two faults of amqp091-go that can hang
// or kill a healthy client, and one that makes a client slow:
//
//   - The library sets its read deadline on the goroutine that also writes heartbeats. While an
//     alarm keeps the broker from reading, that goroutine blocks in a write and sets no deadline,
//     so the library drops a live connection. Here, every read sets its own deadline.
//   - The library ends a dead connection under a lock that a blocked write holds, and closes the
//     socket last. So neither ends. Here, the socket is closed as soon as it cannot be read. That
//     ends the write.
//   - The library writes each message separately, which costs both sides more than the message.
//     Here, messages can be written together.
type socket struct {
	*quickack.Conn
	// silence is after how many nanoseconds without a byte the peer counts as dead; 0 in the
	// handshake.
	silence atomic.Int64
	buffer  *writeBuffer
	handled lookers
	first   atomic.Pointer[string] // the first bytes that the peer sent; nil before that
}

// gatherFor is how long a gathered write waits at most.
const gatherFor = 2 * time.Millisecond

func newSocket(conn net.Conn) *socket {
	return &socket{Conn: quickack.New(conn), buffer: newWriteBuffer(conn, gatherFor)}
}

func (s *socket) Write(p []byte) (int, error) { return s.buffer.write(p) }

// Read is called by the goroutine that handles what the broker sends, when it has handled all that
// came.
func (s *socket) Read(p []byte) (int, error) {
	s.handled.look()
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

// begunWith returns the first bytes that the peer sent, and "" if it sent none.
func (s *socket) begunWith() string {
	if first := s.first.Load(); first != nil {
		return *first
	}
	return ""
}

// SetReadDeadline is called by the library. It has no effect once limitSilence was called.
func (s *socket) SetReadDeadline(t time.Time) error {
	if s.silence.Load() > 0 {
		return nil
	}
	return s.Conn.SetReadDeadline(t)
}

// limitSilence starts the check for silence. It is called after the handshake, which agrees on the
// heartbeat. The broker, too, allows half a heartbeat more.
func (s *socket) limitSilence(heartbeat time.Duration) {
	s.silence.Store(int64(heartbeat + heartbeat/2))
}

// lookers are the confirms of a connection's publishers. They look whether there are answers.
type lookers struct {
	mu  sync.Mutex
	all []*confirms
}

func (l *lookers) add(c *confirms) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, c)
}

func (l *lookers) remove(c *confirms) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(other *confirms) bool { return other == c })
}

func (l *lookers) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.all {
		c.look()
	}
}
