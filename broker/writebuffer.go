package broker

import (
	"net"
	"sync"
	"time"
)

// writeBuffer writes to a connection. While callers gather, it buffers what they write. It sends
// the buffer when the last caller has finished, when the buffer is large enough, or after patience,
// because a caller may be waiting for an answer.
type writeBuffer struct {
	conn     net.Conn
	patience time.Duration

	mu        sync.Mutex
	gathering int // callers of batch that have not finished
	waiting   []byte
	due       *time.Timer
	err       error // of a buffered write, for later callers
}

// gatherMost is the size in bytes at which the writeBuffer sends its buffer.
const gatherMost = 32 << 10

func newWriteBuffer(conn net.Conn, patience time.Duration) *writeBuffer {
	w := &writeBuffer{conn: conn, patience: patience}
	w.due = time.AfterFunc(time.Hour, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.send()
	})
	w.due.Stop()
	return w
}

// batch runs fn, and sends everything that is written meanwhile together.
func (w *writeBuffer) batch(fn func()) {
	w.mu.Lock()
	w.gathering++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.gathering--; w.gathering == 0 {
			w.send()
		}
	}()
	fn()
}

func (w *writeBuffer) write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if w.gathering == 0 {
		return w.conn.Write(p)
	}
	if len(w.waiting) == 0 {
		w.due.Reset(w.patience)
	}
	if w.waiting = append(w.waiting, p...); len(w.waiting) >= gatherMost {
		w.send()
	}
	return len(p), w.err
}

// send writes the buffer. On an error it closes the connection, because it is unknown how much was
// sent.
func (w *writeBuffer) send() {
	w.due.Stop()
	if len(w.waiting) == 0 {
		return
	}
	if _, w.err = w.conn.Write(w.waiting); w.err != nil {
		w.conn.Close()
	}
	if w.waiting = w.waiting[:0]; cap(w.waiting) > 2*gatherMost {
		w.waiting = nil // release the memory of a large message
	}
}
