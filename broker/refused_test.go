package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

// withUser returns a vhost's AMQP URL with another user.
func withUser(v *brokertest.Vhost, user string) string {
	return "amqp://" + user + v.AMQPURL()[strings.LastIndexByte(v.AMQPURL(), '@'):]
}

func TestDialIsRefused(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	stranger := brokertest.New(t).Owner
	for name, c := range map[string]struct{ url, reason, says string }{
		"wrong password": {withUser(v, v.Owner.Name+":wrong"), broker.RefusedLogin, `refused user "` + v.Owner.Name + `" or its password`},
		"unknown user":   {withUser(v, "unknown:wrong"), broker.RefusedLogin, `refused user "unknown" or its password`},
		"no vhost":       {v.AMQPURL() + "-not", broker.RefusedVHost, `has no virtual host "` + v.Name + `-not"`},
		"no access":      {withUser(v, stranger.Name+":"+stranger.Password), broker.RefusedAccess, `user "` + stranger.Name + `" has no access to virtual host "` + v.Name + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := broker.Dial(soon(t), broker.Config{AMQPURL: c.url})
			refused := broker.Refusal(err)
			require.NotNil(t, refused, "%v", err)
			require.Equal(t, c.reason, refused.Reason)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "wrong")

			dead := strings.Replace(c.url, "@", "@127.0.0.1:1,", 1)
			_, err = broker.Dial(soon(t), broker.Config{AMQPURL: dead})
			require.NotNil(t, broker.Refusal(err), "every host that answered refused: %v", err)
		})
	}
}

func TestRefusal(t *testing.T) {
	refused := &broker.RefusedError{Host: "a", Reason: broker.RefusedLogin, Err: amqp.ErrCredentials}
	down := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	unknown := &net.DNSError{Name: "x"}
	for _, c := range []struct {
		err  error
		want *broker.RefusedError
	}{
		{nil, nil},
		{refused, refused},
		{fmt.Errorf("connect: %w", hosts.Errors{fmt.Errorf("a: %w", refused), fmt.Errorf("b: %w", down)}), refused},
		{hosts.Errors{unknown, context.DeadlineExceeded, refused}, refused},
		{hosts.Errors{refused, io.EOF}, nil},
		{hosts.Errors{refused, &amqp.Error{Code: amqp.InternalError, Server: true}}, nil},
		{hosts.Errors{down, unknown}, nil},
		{down, nil},
	} {
		require.Equal(t, c.want, broker.Refusal(c.err), "%v", c.err)
	}
}

// A limit on connections must not end a sidecar, because another connection may end soon.
func TestConnectionLimitIsNoRefusal(t *testing.T) {
	v := brokertest.New(t)
	limit := "/api/vhost-limits/" + v.Name + "/max-connections"
	put(t, v, limit, `{"value":1}`)
	dial(t, v.AMQPURL())
	require.Eventually(t, func() bool {
		_, err := broker.Dial(soon(t), broker.Config{AMQPURL: v.AMQPURL()})
		require.Nil(t, broker.Refusal(err), "%v", err)
		return err != nil
	}, time.Minute, 50*time.Millisecond)
}

func TestDialNamesOtherProtocols(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	at := strings.LastIndexByte(v.AMQPURL(), '@')
	owner := strings.TrimPrefix(v.AMQPURL()[:at+1], "amqp://")
	secure := brokertest.NewCertificate(t, "127.0.0.1").Front(t, v.AMQPURL(), "amqps")
	speaks := func(words string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.ReadFull(c, make([]byte, 5))
				_, _ = c.Write([]byte(words))
				c.Close()
			}
		}()
		return owner + l.Addr().String()
	}
	for name, c := range map[string]struct{ url, says string }{
		"HTTP":            {"amqp://" + speaks("HTTP/1.1 400 Bad Request\r\n\r\n"), "it is an HTTP port"},
		"HTTP over TLS":   {"amqps://" + speaks("HTTP/1.1 400 Bad Request\r\n\r\n"), "it is an HTTP port"},
		"TLS":             {strings.Replace(secure, "amqps:", "amqp:", 1), "TLS port"},
		"silence":         {"amqp://" + speaks(""), "closed the connection without a word"},
		"AMQP for TLS":    {strings.Replace(v.AMQPURL(), "amqp:", "amqps:", 1), "AMQP port without TLS: use amqp://"},
		"the API's, real": {"amqp://" + owner + strings.TrimPrefix(v.ManagementURL()[strings.LastIndexByte(v.ManagementURL(), '@'):], "@"), "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := broker.Dial(soon(t), broker.Config{AMQPURL: c.url})
			require.ErrorContains(t, err, c.says)
			require.Nil(t, broker.Refusal(err))
			require.NotContains(t, err.Error(), v.Owner.Password)
		})
	}
}

func TestMayConfigure(t *testing.T) {
	v := brokertest.New(t)
	may := func(p brokertest.Permissions) bool {
		t.Helper()
		conn := dial(t, v.AddUser(t, "tries", p).AMQPURL())
		may, err := conn.Topology().MayConfigure(soon(t))
		require.NoError(t, err)
		return may
	}
	require.False(t, may(brokertest.Permissions{Configure: `^queue\.`}))
	require.False(t, v.Try(t.Context(), http.MethodGet, "/api/exchanges/"+v.Name+"/jobs.dead", nil, nil) == nil, "MayConfigure declared nothing")
	require.True(t, may(brokertest.Permissions{Write: `^$`, Read: `^$`}))
	require.True(t, may(brokertest.Permissions{}), "the topology exists already")
}

func TestMissingPermissionsAreListed(t *testing.T) {
	v := brokertest.New(t)
	names := []string{"jobs.direct", "jobs.leader", "job_journal", "queue.x"}
	lacks := func(p brokertest.Permissions) []string {
		t.Helper()
		conn := dial(t, v.AddUser(t, "tries", p).AMQPURL())
		lacks, err := conn.Topology().Lacks(soon(t), names)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		return lacks
	}
	byDefault := v.Features(t).DefaultExchange
	if byDefault == "" {
		byDefault = "the default exchange"
	}
	look := func() {
		t.Helper()
		require.Empty(t, lacks(brokertest.Permissions{}))
		require.Equal(t, []string{"configure job_journal", "configure amq.gen-*"}, lacks(brokertest.Permissions{Configure: `^(jobs\..*|queue\..*)$`}))
		require.Equal(t, []string{"write " + byDefault, "write jobs.leader", "write queue.x"}, lacks(brokertest.Permissions{Write: `^(jobs\.direct|job_.*|amq\.gen.*)$`}))
		require.Equal(t, []string{"read jobs.direct", "read jobs.leader", "read amq.gen-*"}, lacks(brokertest.Permissions{Read: `^(job_.*|queue\..*)$`}))
		require.Len(t, lacks(brokertest.Permissions{Configure: `^$`, Write: `^$`, Read: `^$`}), 2*len(names)+2)
	}
	look()
	var queues []any
	v.Do(t, http.MethodGet, "/api/queues/"+v.Name, nil, &queues)
	require.Empty(t, queues, "Lacks created nothing")

	makeAll(t, v.AMQPURL(), dial(t, v.AMQPURL())) // the same while everything exists
	require.NoError(t, dial(t, v.AMQPURL()).Queues().Ensure(soon(t), "x"))
	v.Publish(t, "", "queue.x", amqp.Publishing{Body: []byte("a")})
	look()
	d, ok := v.Get(t, "queue.x")
	require.True(t, ok)
	require.False(t, d.Redelivered, "Lacks consumed nothing")
}
