package streams

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/wire"
)

// declareOn declares a stream with ten records and its leader on node.
func declareOn(t *testing.T, node *localbroker.Broker, stream string, replicas int) {
	t.Helper()
	conn, err := amqp.Dial(node.AMQPURL())
	require.NoError(t, err)
	defer conn.Close()
	ch, err := conn.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	_, err = ch.QueueDeclare(stream, true, false, false, false, amqp.Table{"x-queue-type": "stream",
		"x-initial-cluster-size": int32(replicas), "x-queue-leader-locator": "client-local"})
	require.NoError(t, err)
	for range 10 {
		confirmed, err := ch.PublishWithDeferredConfirm("", stream, false, false, amqp.Publishing{Body: []byte("x")})
		require.NoError(t, err)
		require.True(t, confirmed.Wait())
	}
}

func TestStreamsOfCluster(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	declareOn(t, c.Nodes[0], "everywhere", 3)
	declareOn(t, c.Nodes[2], "alone", 1)
	open := func(t *testing.T, native bool, nodes ...*localbroker.Broker) Transport {
		var amqpURLs, streamURLs []string
		for _, n := range nodes {
			amqpURLs, streamURLs = append(amqpURLs, n.AMQPURL()), append(streamURLs, n.StreamURL())
		}
		cfg := Config{AMQPURL: strings.Join(amqpURLs, ","), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		if native {
			cfg.StreamURL = strings.Join(streamURLs, ",")
		}
		tr, err := Open(t.Context(), cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, tr.Close()) })
		return tr
	}
	readAll := func(t *testing.T, tr Transport, stream string) {
		t.Helper()
		require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == 9 }), 10)
		last, ok, err := tr.Last(t.Context(), stream)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 9, last)
	}

	t.Run("every node leads to the leader and to a replica", func(t *testing.T) {
		leaders := map[string]string{}
		for _, node := range c.Nodes {
			tr := open(t, true, node)
			for _, stream := range []string{"everywhere", "alone"} {
				readAll(t, tr, stream)
				require.NoError(t, tr.(*choice).native.askLeader(t.Context(), stream, func(l *link) error {
					at, err := l.locate(stream)
					require.NoError(t, err)
					require.Equal(t, l.node, at.leader)
					if leaders[stream] == "" {
						leaders[stream] = at.leader
					}
					require.Equal(t, leaders[stream], at.leader)
					return nil
				}))
			}
			require.Equal(t, "native", tr.Name())
		}
		require.NotEqual(t, leaders["everywhere"], leaders["alone"])
	})

	t.Run("AMQP reads from another node with a replica", func(t *testing.T) {
		tr := open(t, false, c.Nodes...)
		readAll(t, tr, "everywhere")
		readAll(t, tr, "alone")
	})

	t.Run("readers outlive a node", func(t *testing.T) {
		one, all, overAMQP := open(t, true, c.Nodes[0]), open(t, true, c.Nodes...), open(t, false, c.Nodes...)
		for _, tr := range []Transport{one, all, overAMQP} {
			readAll(t, tr, "everywhere")
		}
		require.NoError(t, c.Nodes[0].Kill())
		for name, tr := range map[string]Transport{"all nodes given": all, "one given, the others learned": one, "AMQP": overAMQP} {
			t.Log(name)
			begun := time.Now()
			require.Len(t, readUntil(t, tr, "everywhere", First, func(r wire.Record) bool { return r.Offset == 9 }), 10, name)
			require.Less(t, time.Since(begun), 5*time.Second, name)
		}
		brokertest.Eventually(t, func() bool {
			err := all.(*choice).native.askLeader(t.Context(), "everywhere", func(*link) error { return nil })
			return err == nil || !errors.Is(err, ErrLost)
		}, "there is a new leader")
		require.NoError(t, all.(*choice).native.askLeader(t.Context(), "everywhere", func(*link) error { return nil }))
		require.NoError(t, c.Nodes[0].Restart(t.Context()))
	})
}
