package streams

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// socketBuffer is the size of the kernel's buffers. Stream clients usually have 8 KiB. With so
// little, one chunk takes many round trips and a read gets only a few hundred records a second.
const socketBuffer = 1 << 20

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

// dial connects and logs in. If ctx ends meanwhile, dial closes the connection.
func dial(ctx context.Context, cfg Config, to address, purpose string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	conn, err := dialSocket(ctx, cfg, to)
	if err != nil {
		return nil, lost("connecting to %s: %w", to.hostPort, err)
	}
	l := &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), heartbeat: cfg.Heartbeat, timeout: cfg.Timeout,
		to: hosts.Target{Host: to.hostPort, Address: cmp.Or(to.dial, to.hostPort)}, serves: map[string]bool{}}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := l.login(cfg.Name+" "+purpose, to); err != nil {
		conn.Close()
		return nil, fmt.Errorf("streams: logging in to %s: %w", to.hostPort, err)
	}
	return l, nil
}

func dialSocket(ctx context.Context, cfg Config, to address) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", cmp.Or(to.dial, to.hostPort))
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(socketBuffer) // a smaller buffer is slower, but it works
		_ = tcp.SetWriteBuffer(socketBuffer)
	}
	if !to.tls {
		return conn, nil
	}
	settings := cfg.TLS.Clone()
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if settings.ServerName == "" {
		settings.ServerName = to.host
	}
	secure := tls.Client(conn, settings)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

func (l *link) login(name string, to address) error {
	properties := newRequest(cmdPeerProperties).pairs("connection_name", name, "product", "Millrace", "platform", "Go")
	if _, err := l.ask(properties); err != nil {
		return err
	}
	if _, err := l.ask(newRequest(cmdSaslHandshake)); err != nil {
		return err
	}
	secret := "\x00" + to.user + "\x00" + to.password
	if _, err := l.ask(newRequest(cmdSaslAuthenticate).str("PLAIN").bytes(secret)); err != nil {
		return err
	}
	if err := l.tune(); err != nil {
		return err
	}
	answer, err := l.ask(newRequest(cmdOpen).str(to.vhost))
	if err != nil {
		return err
	}
	return l.readNode(answer)
}

// silentAt returns the time at which a connection counts as lost if nothing comes until then. The
// broker sends two heartbeats in one heartbeat interval.
func silentAt(heartbeat time.Duration) time.Time { return time.Now().Add(heartbeat + heartbeat/2) }

// tune agrees on the heartbeat interval: the shorter one that the two sides ask for.
func (l *link) tune() error {
	f, err := l.read()
	if err != nil {
		return err
	}
	if f.command != cmdTune {
		return lost("the broker sent command %d where it should tune", f.command)
	}
	maxFrame, beat := f.content.u32(), time.Duration(f.content.u32())*time.Second
	if err := l.skip(f); err != nil {
		return err
	}
	if beat > 0 && beat < l.heartbeat {
		l.heartbeat = beat
	}
	return l.send(newRequest(cmdTune | response).u32(maxFrame).u32(uint32(l.heartbeat / time.Second)))
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
