package broker

import (
	"net"
	"sync"
	"time"
)

// outbox writes to a connection. While somebody gathers it keeps what is written, and sends it all at once when they are done, or
// have let it wait for patience: they may be waiting for an answer.
type outbox struct {
	conn     net.Conn
	patience time.Duration

	mu        sync.Mutex
	gathering int // how many do
	waiting   []byte
	due       *time.Timer
	err       error // of what was sent when its writer had gone
}

// gatherMost is how many bytes are more than enough to go out together.
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

// gather has what is written while fn runs go out together.
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

// send writes what waits. If it cannot the connection is done for: nobody knows how much went out.
func (o *outbox) send() {
	o.due.Stop()
	if len(o.waiting) == 0 {
		return
	}
	if _, o.err = o.conn.Write(o.waiting); o.err != nil {
		o.conn.Close()
	}
	if o.waiting = o.waiting[:0]; cap(o.waiting) > 2*gatherMost {
		o.waiting = nil // a large message was among it
	}
}
