package streams

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// socketBuffer is the size of the kernel's buffers. Stream clients usually have 8 KiB. With so
// little, one chunk takes many round trips and a read gets only a few hundred records a second.
const socketBuffer = 1 << 20

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
