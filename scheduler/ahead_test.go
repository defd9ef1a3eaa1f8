package scheduler_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// rates limits jobs to 50 a second, of which all may begin at once, and publishes some. It returns
// their jids.
func (s *sidecar) rates(t *testing.T, v *brokertest.Vhost, queue string, n int) (jids []string) {
	t.Helper()
	d := &wire.Definitions{Layer: wire.LayerOperator, Limits: []json.RawMessage{json.RawMessage(`{"name":"api","rate":{"jobs":50,"seconds":1,"burst":50}}`)}}
	require.Equal(t, wire.StatusOK, s.ask(t, wire.Command{Command: wire.CommandDefine, Definitions: d}).Status)
	jobs := make([]amqp.Publishing, n)
	for i := range jobs {
		jids = append(jids, fmt.Sprint("r", i))
		jobs[i] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","args":[],"jid":"r%d","queue":%q,"gate":{}}`, i, queue), DeliveryMode: amqp.Persistent}
	}
	v.Publish(t, "", wire.Gated, jobs...)
	return jids
}

// piles waits until a queue gets no more jobs, and returns how many it has.
func piles(t *testing.T, v *brokertest.Vhost, queue string) (n int) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		before := v.QueueLength(t, queue)
		time.Sleep(3 * time.Second)
		n = v.QueueLength(t, queue)
		return n > 0 && n == before
	}, "no more are delivered")
	return n
}

// While no one takes jobs, those that a rate counts wait at Millrace, and not in their queue. The
// next leader adds none. Consumers get them all, also those that say nothing.
func TestRatedJobsDoNotPileUp(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	jids := s.rates(t, v, "mails", 500)
	piled := piles(t, v, "queue.mails")
	require.Less(t, piled, 400)

	s.stop()
	time.Sleep(2 * time.Second) // the rate would allow a burst
	start(t, v, options{identity: "b"}).leads(t)
	require.Equal(t, piled, piles(t, v, "queue.mails"))
	w := work(t, v, "mails", nil)
	w.gets(t, jids...)
}

// A program that fetches jobs from time to time serves the queue, although it is no consumer.
func TestRatedJobsAreFetched(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	jids := s.rates(t, v, "mails", 400)
	piles(t, v, "queue.mails")
	_, ok := v.Get(t, "queue.mails")
	require.True(t, ok)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.mails") == len(jids)-1 }, "the others come at the rate")
}
