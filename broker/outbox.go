package broker

import (
	"net"
	"sync"
	"time"
)

// outbox writes to a connection. While callers gather, it buffers what they write. It sends the
// buffer when the last caller has finished, when the buffer is large enough, or after patience,
// because a caller may be waiting for an answer.
type outbox struct {
	conn     net.Conn
	patience time.Duration

	mu        sync.Mutex
	gathering int // callers of gather that have not finished
	waiting   []byte
	due       *time.Timer
	err       error // of a buffered write, for later callers
}

// gatherMost is the size in bytes at which the outbox sends its buffer.
const gatherMost = 32 << 10

func newOutbox(conn net.Conn, patience time.Duration) *outbox {
	o := &outbox{conn: conn, patience: patience}
	o.due = time.AfterFunc(time.Hour, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.send()
	})
	o.due.Stop()
	return o
}

// gather runs fn, and sends everything that is written meanwhile together.
func (o *outbox) gather(fn func()) {
	o.mu.Lock()
	o.gathering++
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.gathering--; o.gathering == 0 {
			o.send()
		}
	}()
	fn()
}

func (o *outbox) write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	if o.gathering == 0 {
		return o.conn.Write(p)
	}
	if len(o.waiting) == 0 {
		o.due.Reset(o.patience)
	}
	if o.waiting = append(o.waiting, p...); len(o.waiting) >= gatherMost {
		o.send()
	}
	return len(p), o.err
}

// send writes the buffer. On an error it closes the connection, because it is unknown how much was
// sent.
func (o *outbox) send() {
	o.due.Stop()
	if len(o.waiting) == 0 {
		return
	}
	if _, o.err = o.conn.Write(o.waiting); o.err != nil {
		o.conn.Close()
	}
	if o.waiting = o.waiting[:0]; cap(o.waiting) > 2*gatherMost {
		o.waiting = nil // release the memory of a large message
	}
}
