package streams

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// The commands of the stream protocol that a reader needs. A response has the highest bit set.
const (
	cmdSubscribe        = 7
	cmdDeliver          = 8
	cmdCredit           = 9
	cmdUnsubscribe      = 12
	cmdMetadata         = 15
	cmdMetadataUpdate   = 16
	cmdPeerProperties   = 17
	cmdSaslHandshake    = 18
	cmdSaslAuthenticate = 19
	cmdTune             = 20
	cmdOpen             = 21
	cmdClose            = 22
	cmdHeartbeat        = 23

	response = 0x8000
)

const (
	codeOK                 = 1
	codeNoStream           = 2
	codeStreamNotAvailable = 6
	codeSaslFailure        = 8
	codeLoopbackOnly       = 11
	codeVhostRefused       = 12
	codeAccessRefused      = 16
)

// socketBuffer is the size of the kernel's buffers. With the 8 KiB that are usual in stream clients, one chunk takes many round trips
// and a read runs at a few hundred records a second.
const socketBuffer = 1 << 20

// link is one connection that speaks RabbitMQ's stream protocol. One goroutine reads; any may write.
type link struct {
	conn      net.Conn
	in        *bufio.Reader
	heartbeat time.Duration
	timeout   time.Duration

	mu   sync.Mutex // guards writing
	next uint32     // the last correlation id given out
}

// frame is what the broker sent: a command and, still unread, its content. It must be read or skipped before the next one.
type frame struct {
	command uint16
	content *content
}

// dial connects and logs in. The connection is of no use to anybody once ctx has ended.
func dial(ctx context.Context, cfg Config, to address, purpose string) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	conn, err := dialSocket(ctx, cfg, to)
	if err != nil {
		return nil, lost("connecting to %s: %w", to.hostPort, err)
	}
	l := &link{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), heartbeat: cfg.Heartbeat, timeout: cfg.Timeout}
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
	conn, err := dialer.DialContext(ctx, "tcp", to.hostPort)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(socketBuffer) // a smaller buffer is slower, and no reason to give up
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
	_, err := l.ask(newRequest(cmdOpen).str(to.vhost))
	return err
}

// tune agrees on the heartbeat: the shorter of what the two sides want.
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

// read gives the next frame. It answers the broker's heartbeats and its wish to close by itself.
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

// skip reads past what is left of a frame.
func (l *link) skip(f frame) error {
	if _, err := io.Copy(io.Discard, f.content); err != nil {
		return lost("reading: %w", err)
	}
	return nil
}

// ask sends a request and waits for its response, on a connection to which nothing is delivered.
func (l *link) ask(r *request) (*content, error) {
	id, err := l.start(r)
	if err != nil {
		return nil, err
	}
	for {
		f, err := l.read()
		if err != nil {
			return nil, err
		}
		if answer, ok := f.answers(r, id); ok {
			return answer, l.check(f, r)
		}
		if err := l.skip(f); err != nil {
			return nil, err
		}
	}
}

// start sends a request without waiting for its response.
func (l *link) start(r *request) (id uint32, err error) {
	l.mu.Lock()
	l.next++
	id = l.next
	l.mu.Unlock()
	return id, l.send(r.withID(id))
}

// answers tells whether the frame is the response to a request. It reads the correlation id of every response: one reader, one question.
func (f frame) answers(r *request, id uint32) (*content, bool) {
	if f.command != r.command|response {
		return nil, false
	}
	return f.content, f.content.u32() == id
}

// check reads the response code, which all responses but metadata begin with.
func (l *link) check(f frame, r *request) error {
	if r.command == cmdMetadata {
		return nil
	}
	code := f.content.u16()
	if f.content.err != nil {
		return lost("reading: %w", f.content.err)
	}
	if err := codeError(code); err != nil {
		return err
	}
	if r.command == cmdPeerProperties || r.command == cmdSaslHandshake || r.command == cmdOpen {
		return l.skip(f)
	}
	return nil
}

func codeError(code uint16) error {
	switch code {
	case codeOK:
		return nil
	case codeNoStream:
		return fmt.Errorf("streams: %w", ErrNoStream)
	case codeSaslFailure, codeVhostRefused, codeLoopbackOnly, codeAccessRefused:
		return fmt.Errorf("streams: %w (response code %d)", ErrRefused, code)
	case codeStreamNotAvailable:
		return lost("the stream is not available on this node (response code %d)", code)
	default:
		return lost("response code %d", code)
	}
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

// beat sends heartbeats until ctx ends.
func (l *link) beat(ctx context.Context) {
	ticker := time.NewTicker(max(l.heartbeat/2, time.Second/2))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if l.send(newRequest(cmdHeartbeat)) != nil {
				return // whoever reads will see it too
			}
		}
	}
}

// close takes leave, so that the broker does not log a lost connection, and does not wait for an answer.
func (l *link) close() {
	_ = l.conn.SetReadDeadline(time.Now())
	if l.mu.TryLock() { // whoever is writing now would be stuck for good
		_ = l.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = l.conn.Write(newRequest(cmdClose).withID(0).u16(codeOK).str("bye").frame())
		l.mu.Unlock()
	}
	l.conn.Close()
}

// content reads what is left of a frame. Errors stick, so that a whole response is read before one looks.
type content struct {
	from *link
	left int64
	err  error
	word [8]byte
}

var errFrame = errors.New("frame ends too early")

func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	if c.from.in.Buffered() == 0 {
		_ = c.from.conn.SetReadDeadline(time.Now().Add(3 * c.from.heartbeat))
	}
	n, err := c.from.in.Read(p)
	c.left -= int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (c *content) full(p []byte) bool {
	if c.err == nil && int64(len(p)) > c.left {
		c.err = errFrame
	}
	if c.err != nil {
		return false
	}
	if _, err := io.ReadFull(c, p); err != nil {
		c.err = err
		return false
	}
	return true
}

func (c *content) u8() byte {
	c.full(c.word[:1])
	return c.word[0]
}

func (c *content) u16() uint16 {
	c.full(c.word[:2])
	return binary.BigEndian.Uint16(c.word[:2])
}

func (c *content) u32() uint32 {
	c.full(c.word[:4])
	return binary.BigEndian.Uint32(c.word[:4])
}

func (c *content) u64() uint64 {
	c.full(c.word[:8])
	return binary.BigEndian.Uint64(c.word[:8])
}

func (c *content) str() string {
	b := make([]byte, c.u16())
	if c.err != nil || !c.full(b) {
		return ""
	}
	return string(b)
}

// request builds a frame.
type request struct {
	command uint16
	b       []byte
}

func newRequest(command uint16) *request {
	r := &request{command: command, b: make([]byte, 4, 64)}
	return r.u16(command).u16(1)
}

// withID puts the correlation id where it belongs, behind the version.
func (r *request) withID(id uint32) *request {
	rest := append([]byte(nil), r.b[8:]...)
	r.b = append(binary.BigEndian.AppendUint32(r.b[:8], id), rest...)
	return r
}

func (r *request) u8(v byte) *request {
	r.b = append(r.b, v)
	return r
}

func (r *request) u16(v uint16) *request {
	r.b = binary.BigEndian.AppendUint16(r.b, v)
	return r
}

func (r *request) u32(v uint32) *request {
	r.b = binary.BigEndian.AppendUint32(r.b, v)
	return r
}

func (r *request) u64(v uint64) *request {
	r.b = binary.BigEndian.AppendUint64(r.b, v)
	return r
}

func (r *request) str(s string) *request {
	r.u16(uint16(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *request) bytes(s string) *request {
	r.u32(uint32(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *request) pairs(keysAndValues ...string) *request {
	r.u32(uint32(len(keysAndValues) / 2))
	for _, s := range keysAndValues {
		r.str(s)
	}
	return r
}

func (r *request) frame() []byte {
	binary.BigEndian.PutUint32(r.b, uint32(len(r.b)-4))
	return r.b
}
