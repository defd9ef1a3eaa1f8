package streams

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// link is one connection that speaks RabbitMQ's stream protocol. One goroutine reads; any goroutine
// may write.
type link struct {
	conn      net.Conn
	in        *bufio.Reader
	heartbeat time.Duration
	timeout   time.Duration

	to     hosts.Target
	node   string          // the name that the broker advertises (see located), or empty
	serves map[string]bool // streams of which this node has a replica
	kept   int             // how often the connection was kept for reuse (see links)

	mu   sync.Mutex // guards writing
	next uint32     // the last correlation id used
}

// read returns the next frame. It skips the broker's heartbeats, and answers its request to close.
func (l *link) read() (frame, error) {
	for {
		content := &content{from: l}
		content.left = 4
		size := content.u32()
		content.left = int64(size)
		f := frame{command: content.u16(), content: content}
		content.u16() // version
		if content.err != nil {
			return frame{}, lost("reading: %w", content.err)
		}
		switch f.command {
		case cmdHeartbeat:
			if err := l.skip(f); err != nil {
				return frame{}, err
			}
		case cmdClose:
			id, code, reason := content.u32(), content.u16(), content.str()
			_ = l.send(newRequest(cmdClose | response).u32(id).u16(codeOK))
			return frame{}, lost("closed by the broker: %s (%d)", reason, code)
		default:
			return f, nil
		}
	}
}

// Read reads bytes of a frame. It fails if none come for longer than the heartbeats allow.
func (l *link) Read(p []byte) (int, error) {
	if l.in.Buffered() == 0 {
		_ = l.conn.SetReadDeadline(silentAt(l.heartbeat))
	}
	return l.in.Read(p)
}

// skip reads past the rest of a frame.
func (l *link) skip(f frame) error {
	if _, err := io.Copy(io.Discard, f.content); err != nil {
		return lost("reading: %w", err)
	}
	return nil
}

func (l *link) send(r *request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(l.timeout))
	if _, err := l.conn.Write(r.frame()); err != nil {
		return lost("writing: %w", err)
	}
	return nil
}

// every sends a request that needs no answer at each interval, until ctx ends.
func (l *link) every(ctx context.Context, interval time.Duration, what func() *request) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if l.send(what()) != nil {
				return // the reading goroutine sees the error too
			}
		}
	}
}

// close sends a close request, so that the broker does not log a lost connection. It does not wait
// for the answer.
func (l *link) close() {
	_ = l.conn.SetReadDeadline(time.Now())
	if l.mu.TryLock() { // if the lock is held, a write is stuck
		_ = l.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = l.conn.Write(newRequest(cmdClose).withID(0).u16(codeOK).str("bye").frame())
		l.mu.Unlock()
	}
	l.conn.Close()
}
