package broker_test

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// relay passes one connection on until it stops reading from either side. Then writes to it block,
// as they do when the peer's machine vanishes. brokertest's frozen proxy differs: it continues to
// read, and discards the data.
type relay struct {
	url  string
	gate sync.RWMutex // held for writing while stopped
}

func newRelay(t *testing.T, upstream string) *relay {
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	host := u.Host
	u.Host = listener.Addr().String()
	r := &relay{url: u.String()}
	var all sync.WaitGroup
	all.Go(func() {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", host)
		if err != nil {
			client.Close()
			return
		}
		all.Go(func() { r.pass(client, server) })
		all.Go(func() { r.pass(server, client) })
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	return r
}

func (r *relay) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		r.waitForGate()
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		r.waitForGate()
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (r *relay) stop(t *testing.T) {
	r.gate.Lock()
	t.Cleanup(r.gate.Unlock)
}

// waitForGate waits while the gate is shut.
func (r *relay) waitForGate() {
	r.gate.RLock()
	defer r.gate.RUnlock()
}
