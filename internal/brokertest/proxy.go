package brokertest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Proxy is a network between a client and the broker that can fail. It is not safe for concurrent
// use.
type Proxy struct {
	url   url.URL
	proxy *toxiproxy.Proxy
}

// NewProxy puts a proxy before a URL of the broker (AMQP, management or stream).
func NewProxy(t T, upstream string) *Proxy {
	t.Helper()
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	p := &Proxy{url: *u}
	p.start(t, "127.0.0.1:0", u.Host)
	t.Cleanup(func() { within(func() { p.proxy.Stop() }) })
	p.url.Host = p.proxy.Listen
	return p
}

func (p *Proxy) start(t T, listen, upstream string) {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p.proxy = toxiproxy.NewProxy(server, "broker", listen, upstream)
	var err error
	EventuallyWithin(t, healWithin, func() bool { err = p.proxy.Start(); return err == nil }, "the proxy listens on %s", listen)
}

// healWithin limits how long toxiproxy may take to remove a fault. It waits forever for connections
// that ended while their data was held up.
const healWithin = 5 * time.Second

// within reports whether do ends in time.
func within(do func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
		return true
	case <-time.After(healWithin):
		return false
	}
}

// URL returns the URL that leads to the broker through the proxy.
func (p *Proxy) URL() string { return p.url.String() }

// Cut closes all connections, and refuses new ones until Heal.
func (p *Proxy) Cut(t T) {
	t.Helper()
	p.proxy.Stop()
}

// Freeze discards what is sent in both directions, but leaves the connections open, like a network
// that loses every packet. Heal then ends the frozen connections, because bytes are missing.
func (p *Proxy) Freeze(t T) {
	t.Helper()
	p.add(t, "timeout", map[string]int64{"timeout": 0}, "upstream", "downstream")
}

// Mute discards what the broker sends. What is sent to the broker arrives. Heal then ends the
// connections.
func (p *Proxy) Mute(t T) {
	t.Helper()
	p.add(t, "timeout", map[string]int64{"timeout": 0}, "downstream")
}

// Stall holds up what is sent in both directions, and loses nothing: Heal lets it pass, however
// late.
func (p *Proxy) Stall(t T) {
	t.Helper()
	p.Slow(t, 24*time.Hour)
}

// Slow delays what is sent in both directions.
func (p *Proxy) Slow(t T, by time.Duration) {
	t.Helper()
	p.add(t, "latency", map[string]int64{"latency": by.Milliseconds()}, "upstream", "downstream")
}

// Heal undoes Cut, Freeze, Mute, Stall and Slow. If toxiproxy cannot, Heal replaces the proxy, and
// the connections of the old one are dead.
func (p *Proxy) Heal(t T) {
	t.Helper()
	old := p.proxy
	if !within(func() { old.Toxics.ResetToxics(context.Background()) }) {
		go old.Stop() // it stops listening immediately
		p.start(t, old.Listen, old.Upstream)
		return
	}
	if !old.Enabled {
		require.NoError(t, old.Start())
	}
}

func (p *Proxy) add(t T, kind string, attributes map[string]int64, directions ...string) {
	t.Helper()
	for _, direction := range directions {
		text, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
		require.NoError(t, err)
		_, err = p.proxy.Toxics.AddToxicJson(bytes.NewReader(text))
		require.NoError(t, err)
	}
}
