package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// tap is a proxy between a sidecar and a node. It decodes the traffic, and can be frozen.
type tap struct {
	listener      net.Listener
	upstream      string
	truth         *truth
	sidecar, node int

	mu     sync.Mutex
	frozen chan struct{} // closed by thaw; nil if not frozen
	cut    atomic.Bool   // it has been frozen
	conns  map[net.Conn]bool
	closed bool
	all    sync.WaitGroup
}

func newTap(t *truth, sidecar, node int, upstream string) (*tap, error) {
	// The sidecar finds the node's management API by this name.
	host, _, err := net.SplitHostPort(upstream)
	if err != nil {
		return nil, fmt.Errorf("starting a tap: %w", err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fmt.Errorf("starting a tap: %w", err)
	}
	p := &tap{listener: l, upstream: upstream, truth: t, sidecar: sidecar, node: node, conns: map[net.Conn]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

func (p *tap) address() string { return p.listener.Addr().String() }

func (p *tap) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(down) })
	}
}

func (p *tap) serve(down net.Conn) {
	defer down.Close()
	up, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer up.Close()
	if !p.keep(down, up) {
		return
	}
	defer p.forget(down, up)
	c := p.truth.connection(p.sidecar, p.node, &p.cut)
	defer c.end()
	var both sync.WaitGroup
	const protocolHeader = 8
	both.Go(func() { p.copy(up, down, &frames{preface: protocolHeader, handle: c.fromSidecar}) })
	both.Go(func() { p.copy(down, up, &frames{handle: c.fromBroker}) })
	both.Wait()
}

// copy passes bytes on. It shows them to the watcher before: a fire counts as sent, and an answer
// as received, before it passes.
func (p *tap) copy(to, from net.Conn, watcher io.Writer) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.pass()
			_, _ = watcher.Write(buffer[:n])
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while the tap is frozen.
func (p *tap) pass() {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func (p *tap) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *tap) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// freeze holds up all data, in both directions, until thaw.
func (p *tap) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut.Store(true)
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

func (p *tap) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

func (p *tap) close() error {
	p.thaw()
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
