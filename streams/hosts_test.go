package streams

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/wire"
)

// several returns one URL with the hosts of all urls.
func several(t testing.TB, urls ...string) string {
	t.Helper()
	u, err := hosts.Parse(strings.Join(urls, ","))
	require.NoError(t, err)
	return u.String()
}

// elsewhere returns the URL with another host and port.
func elsewhere(t testing.TB, raw, hostPort string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	u.Host = hostPort
	return u.String()
}

// After a loss, streams are read from another host. Two proxies before one node stand for two
// nodes.
func TestReadMovesToAnotherHost(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			target := b.amqpURL
			if c.name == "native" {
				target = b.streamURL
			}
			one, two := brokertest.NewProxy(t, target), brokertest.NewProxy(t, target)
			through := &testBroker{Vhost: b.Vhost, ch: b.ch, first: b.first, amqpURL: b.amqpURL, streamURL: b.streamURL}
			list := several(t, elsewhere(t, target, "127.0.0.1:1"), one.URL(), two.URL())
			if c.name == "native" {
				through.streamURL = list
			} else {
				through.amqpURL = list
			}
			tr := c.open(t, through, Config{})
			for _, cut := range []*brokertest.Proxy{one, two, one} {
				r := startReading(t, tr, stream, First)
				r.next(t)
				_, err := tr.Fetch(t.Context(), stream, b.first)
				require.NoError(t, err)
				cut.Cut(t)
				begun := time.Now()
				require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
				_, err = tr.Fetch(t.Context(), stream, b.first)
				require.NoError(t, err)
				require.Less(t, time.Since(begun), 5*time.Second)
				require.Equal(t, c.name, tr.Name())
				r.cancel()
				_ = r.end(t) // its connection may be lost or not
				cut.Heal(t)
			}
		})
	}
}

// A host that accepts connections and never answers, like a frozen node, is passed over.
func TestSilentHostIsSkipped(t *testing.T) {
	b := newTestBroker(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			near := &hosts.Order{}
			// The silent host must come first.
			near.Good(hosts.Target{Host: "localhost:5672"})
			at := "localhost:" + strings.Split(silent.Addr().String(), ":")[1]
			through := &testBroker{Vhost: b.Vhost, ch: b.ch, first: b.first, amqpURL: several(t, elsewhere(t, b.amqpURL, at), b.amqpURL)}
			if c.name == "native" {
				through.streamURL = several(t, elsewhere(t, b.streamURL, at), b.streamURL)
			}
			begun := time.Now()
			tr := c.open(t, through, Config{Hosts: near})
			require.Greater(t, time.Since(begun), time.Second, "the silent one was tried first")
			require.Equal(t, c.name, tr.Name())
			require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
		})
	}
}

// A node that is cut off from the cluster keeps its connections and does not answer where a stream
// is. Another node is asked then.
func TestNodeThatCannotLocateStream(t *testing.T) {
	b := newTestBroker(t)
	if b.streamURL == "" {
		t.Skip("the broker has no native protocol")
	}
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 10)...)
	proxy := brokertest.NewProxy(t, b.streamURL)
	_, port, _ := strings.Cut(strings.TrimPrefix(proxy.URL(), "rabbitmq-stream://"), "@127.0.0.1:")
	port, _, _ = strings.Cut(port, "/")
	near := &hosts.Order{}
	// The proxy must come first.
	near.Good(hosts.Target{Host: "localhost:5672"})
	tr, err := Open(t.Context(), Config{AMQPURL: b.amqpURL, Hosts: near, Heartbeat: time.Hour,
		StreamURL: several(t, elsewhere(t, b.streamURL, "localhost:"+port), b.streamURL)})
	require.NoError(t, err)
	defer tr.Close()
	_, ok, err := tr.Last(t.Context(), stream)
	require.NoError(t, err)
	require.True(t, ok)
	proxy.Freeze(t)
	last, _, err := tr.Last(t.Context(), stream)
	require.NoError(t, err)
	require.Equal(t, b.first+9, last)
}

func TestTLSChecksGivenName(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 10)...)
	certificate := brokertest.NewCertificate(t, "localhost")
	named := func(front string) string {
		u, err := url.Parse(front)
		require.NoError(t, err)
		return elsewhere(t, front, "localhost:"+u.Port())
	}
	byAddress := &testBroker{Vhost: b.Vhost, ch: b.ch, amqpURL: certificate.Front(t, b.amqpURL, "amqps")}
	byName := &testBroker{Vhost: b.Vhost, ch: b.ch, amqpURL: named(byAddress.amqpURL)}
	if b.streamURL != "" {
		byAddress.streamURL = certificate.Front(t, b.streamURL, "rabbitmq-stream+tls")
		byName.streamURL = named(byAddress.streamURL)
	}
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, byName, Config{TLS: certificate.Config()})
			require.Equal(t, c.name, tr.Name())
			require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
		})
	}
	_, err := Open(t.Context(), Config{AMQPURL: byAddress.amqpURL, StreamURL: byAddress.streamURL, TLS: certificate.Config(), Patience: time.Millisecond})
	require.ErrorContains(t, err, "certificate", "it is for localhost, not for 127.0.0.1")
}

// Readers wait for the native protocol for a while, because it can read more. Then they fall back
// to AMQP 0-9-1, and return when native answers again.
func TestReadersFallBackAndReturn(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 10)...)
	proxy := brokertest.NewProxy(t, b.streamURL)
	tr, err := Open(t.Context(), Config{AMQPURL: b.amqpURL, StreamURL: proxy.URL(), FallBack: time.Second, Again: 200 * time.Millisecond})
	require.NoError(t, err)
	defer tr.Close()
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return tr.Read(ctx, stream, First, func([]wire.Record) error { return errEnough })
	}
	require.Equal(t, errEnough, read())

	proxy.Cut(t)
	begun := time.Now()
	brokertest.Eventually(t, func() bool {
		err = read()
		return errors.Is(err, errEnough)
	}, "it is read over AMQP 0-9-1")
	require.GreaterOrEqual(t, time.Since(begun), time.Second)
	require.Equal(t, "amqp", tr.Name())
	_, err = tr.Fetch(t.Context(), stream, b.first)
	require.NoError(t, err)

	proxy.Heal(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorIs(t, tr.Read(ctx, stream, First, func([]wire.Record) error { return nil }), ErrLost, "a reader ends so that the next one is native")
	require.Equal(t, "native", tr.Name())
	require.Equal(t, errEnough, read())
}
