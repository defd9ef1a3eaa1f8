package scheduler_test

import (
	"fmt"
	"net/http"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// The first leader of this version finds dead letters in the queue of earlier versions. Each
// becomes a dead job once, and the queue is deleted. Later dead letters come through the new queue.
func TestDeadLettersOfEarlierVersionsAreMoved(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDead, amqp.ExchangeFanout, true, false, false, false, nil))
	_, err := ch.QueueDeclare(wire.OldDeadLetters, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(wire.OldDeadLetters, "", wire.ExchangeDead, false, nil))
	const n = 600 // more than one batch
	letters := make([]amqp.Publishing, n)
	for i := range letters {
		letters[i] = amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, `{"class":"C","jid":"old-%d"}`, i)}
	}
	v.Publish(t, wire.ExchangeDead, "", letters...)

	s := start(t, v, options{identity: "a"}).leads(t)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.DeadJobs) == n }, "all are dead jobs")
	brokertest.Eventually(t, func() bool {
		return v.Try(t.Context(), http.MethodGet, "/api/queues/"+v.Name+"/"+wire.OldDeadLetters, nil, nil) != nil
	}, "the queue is deleted")
	v.Publish(t, wire.ExchangeDead, "", amqp.Publishing{Body: []byte(`{"class":"C","jid":"new"}`)})
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.DeadJobs) == n+1 }, "the new one is a dead job")
	require.Empty(t, s.Status().Degraded)
	require.Len(t, v.ReadStream(t, wire.DeadJobs), n+1+1, "the jobs, and the leader's barrier")
}
