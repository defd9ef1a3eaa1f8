package gotest

import (
	"fmt"
	"net/http"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// deadAddress is an address without a listener. A free port would not do: another test may take it.
const deadAddress = "127.0.0.1:1"

// TestHosts cuts the host to which the producer and the worker are connected. Of the three hosts,
// one never answers.
func TestHosts(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	uri, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	first, second := brokertest.NewProxy(t, v.AMQPURL()), brokertest.NewProxy(t, v.AMQPURL())
	second.Cut(t)
	urls := []string{
		fmt.Sprintf("amqp://%s:%s@%s/%s", uri.Username, uri.Password, deadAddress, uri.Vhost), first.URL(), second.URL(),
	}
	c, err := NewClient(ClientConfig{URLs: urls})
	require.NoError(t, err)
	defer c.Close()
	w := newTestWorker(t, WorkerConfig{URLs: urls})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	_, err = c.Enqueue(t.Context(), Args("A", "one"), nil)
	require.NoError(t, err)
	w.said.has(t, "one")

	second.Heal(t)
	first.Cut(t)
	_, err = c.Enqueue(t.Context(), Args("A", "two"), nil)
	require.NoError(t, err)
	w.said.has(t, "two")
	w.idle(t, v, "default")
}

// The error of a round has the reason of each host. A host that refuses the client ends the
// attempts, even if others are unreachable.
func TestHostsThatRefuse(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	uri, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	c := client(t, fmt.Sprintf("amqp://%s:wrong@%s,%s:%d/%s", uri.Username, deadAddress, uri.Host, uri.Port, uri.Vhost))
	_, err = c.Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorIs(t, err, amqp.ErrCredentials)
	require.ErrorContains(t, err, deadAddress+": ")
	require.NotContains(t, err.Error(), "wrong")
}

// A queue that exists is used as it is. A missing queue does not delay others.
func TestQueuesOfOtherTypes(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	ch := v.Channel(t)
	for queue, args := range map[string]amqp.Table{"a": {"x-queue-type": "quorum"}, "b": {"x-max-priority": 3}, "c": {"x-max-length": 1000}} {
		_, err := ch.QueueDeclare(wire.QueuePrefix+queue, true, false, false, false, args)
		require.NoError(t, err)
		v.Publish(t, "", wire.QueuePrefix+queue, amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"A","args":[%q]}`, queue)})
	}
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), NoDeclare: true, Queues: []string{"missing", "a", "b", "c"}})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	w.said.has(t, "a", "b", "c")
	for _, queue := range []string{"a", "b", "c"} {
		w.idle(t, v, queue)
	}
	_, err := ch.QueueDeclare("queue.missing", true, false, false, false, nil)
	require.NoError(t, err)
	v.Publish(t, "", "queue.missing", amqp.Publishing{Body: []byte(`{"class":"A","args":["missing"]}`)})
	w.said.has(t, "missing")
}

// A missing queue is declared with priorities, which quorum queues do not have, even if queues are
// quorum queues by default.
func TestMissingQueuesAreClassic(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	v.Do(t, http.MethodPut, "/api/vhosts/"+v.Name, map[string]string{"default_queue_type": "quorum"}, nil)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Queues: []string{"new"}})
	w.Handle("A", w.says(nil), nil)
	w.start(t)
	brokertest.Eventually(t, func() bool {
		var q struct {
			Type      string         `json:"type"`
			Arguments map[string]any `json:"arguments"`
		}
		err := v.Try(t.Context(), http.MethodGet, "/api/queues/"+v.Name+"/queue.new", nil, &q)
		return err == nil && q.Type != "quorum" && q.Arguments["x-max-priority"] == float64(wire.MaxPriority) && consumers(t, v, "new") == 1
	}, "the queue is there, and consumed")
}

// A sidecar that never ran leaves no exchange. The client reports that immediately.
func TestEnqueueWithoutSidecar(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	c := client(t, v.AMQPURL())
	_, err := c.Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "404")
	_, err = c.EnqueueBulk(t.Context(), []EnqueueParams{{Args: Args("A")}, {Args: Args("A")}})
	require.ErrorIs(t, err, ErrRefused)
	topology(t, v)
	_, err = c.Enqueue(t.Context(), Args("A"), nil)
	require.NoError(t, err, "the client works after a refusal")
}
