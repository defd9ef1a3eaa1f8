package broker_test

import (
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// several returns a URL with the hosts of several URLs.
func several(t *testing.T, urls ...string) string {
	t.Helper()
	u, err := hosts.Parse(strings.Join(urls, ","))
	require.NoError(t, err)
	return u.String()
}

// elsewhere returns a URL with another host and port.
func elsewhere(t *testing.T, raw, hostPort string) string {
	t.Helper()
	u, err := url.Parse(raw)
	require.NoError(t, err)
	u.Host = hostPort
	return u.String()
}

func TestDeadHostIsSkipped(t *testing.T) {
	v := brokertest.New(t)
	dead := elsewhere(t, v.AMQPURL(), "127.0.0.1:1")
	for range 5 { // in any order
		conn := dial(t, several(t, dead, v.AMQPURL()))
		require.True(t, strings.HasSuffix(v.AMQPURL(), conn.Host()+"/"+v.Name), conn.Host())
		require.NoError(t, conn.Close())
	}
	_, err := broker.Dial(soon(t), broker.Config{AMQPURL: several(t, dead, elsewhere(t, dead, "127.0.0.1:2"))})
	require.ErrorContains(t, err, "127.0.0.1:1: dial tcp")
	require.ErrorContains(t, err, "127.0.0.1:2: dial tcp")
	require.NotContains(t, err.Error(), v.Owner.Password)
}

func TestSilentHostIsSkipped(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	order := &hosts.Order{}
	order.Good(hosts.Target{Host: silent.Addr().String()}) // so that the silent host comes first
	begun := time.Now()
	conn, err := broker.Dial(soon(t), broker.Config{AMQPURL: several(t, elsewhere(t, v.AMQPURL(), silent.Addr().String()), v.AMQPURL()), Hosts: order})
	require.NoError(t, err)
	require.Greater(t, time.Since(begun), time.Second, "the silent host was tried")
	require.NoError(t, conn.Close())
}

func TestHostOfLostConnectionIsNotTriedFirst(t *testing.T) {
	v := brokertest.New(t)
	a, b := brokertest.NewProxy(t, v.AMQPURL()), brokertest.NewProxy(t, v.AMQPURL())
	cfg := broker.Config{AMQPURL: several(t, a.URL(), b.URL()), Hosts: &hosts.Order{}}
	connect := func() *broker.Conn {
		conn, err := broker.Dial(soon(t), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, other := connect(), connect()
	require.Equal(t, first.Host(), other.Host(), "the last good host comes first")
	require.NoError(t, other.Close())
	require.Equal(t, first.Host(), connect().Host(), "a closed connection does not count as lost")

	lost := a
	if !strings.Contains(a.URL(), first.Host()) {
		lost = b
	}
	lost.Cut(t)
	<-first.Done()
	lost.Heal(t) // from now on it could be used again
	second := connect()
	require.NotEqual(t, first.Host(), second.Host())
	second.Shun()
	require.Equal(t, first.Host(), connect().Host())
}

// TLS checks the given name of a host, not the address to which it resolves.
func TestTLSChecksGivenHostName(t *testing.T) {
	v := brokertest.New(t)
	certificate := brokertest.NewCertificate(t, "localhost")
	front := certificate.Front(t, v.AMQPURL(), "amqps")
	u, err := url.Parse(front)
	require.NoError(t, err)
	query := "?cacertfile=" + url.QueryEscape(certificate.File)
	named := elsewhere(t, front, "localhost:"+u.Port())

	conn := dial(t, several(t, named+query, elsewhere(t, front, "localhost:1")+query))
	require.Equal(t, "localhost:"+u.Port(), conn.Host())

	_, err = broker.Dial(soon(t), broker.Config{AMQPURL: front + query})
	require.ErrorContains(t, err, "certificate", "the certificate is for localhost, not for 127.0.0.1")
	_, err = broker.Dial(soon(t), broker.Config{AMQPURL: named})
	require.ErrorContains(t, err, "certificate", "the certificate's authority is not known")
}
