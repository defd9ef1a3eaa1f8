package scheduler_test

import (
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// Where quorum queues are the virtual host's default, jobs arrive from the start, and a job that a
// worker rejects is a dead job.
func TestQuorumQueuesAsDefault(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	if !v.Features(t).QuorumPriorities {
		t.Skip("quorum queues of this broker have no priorities")
	}
	v.Do(t, http.MethodPut, "/api/vhosts/"+v.Name, map[string]any{"default_queue_type": "quorum"}, nil)
	s := start(t, v, options{identity: "a"}).leads(t)
	v.Publish(t, wire.ExchangeDirect, "mail", amqp.Publishing{Body: []byte(`{"class":"C","jid":"first"}`)})
	schedule(t, v, time.Now(), "mail", names("later", 20)...)

	ch := v.Channel(t)
	var jobs <-chan amqp.Delivery
	brokertest.Eventually(t, func() bool {
		var err error
		jobs, err = ch.Consume("queue.mail", "", false, false, false, false, nil)
		if err != nil {
			ch = v.Channel(t)
		}
		return err == nil
	}, "the queue is there")
	seen := map[string]int{}
	for len(seen) < 21 {
		select {
		case d := <-jobs:
			seen[d.MessageId]++
			require.NoError(t, d.Reject(false))
		case <-time.After(30 * time.Second):
			require.FailNow(t, "no more jobs come", "%v", seen)
		}
	}
	var queue struct {
		Type   string `json:"type"`
		Policy string `json:"policy"`
	}
	brokertest.Eventually(t, func() bool {
		v.Do(t, http.MethodGet, "/api/queues/"+v.Name+"/queue.mail", nil, &queue)
		return queue.Policy == "millrace-quorum"
	}, "its policy applies")
	require.Equal(t, "quorum", queue.Type)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.DeadJobs) == 21 }, "all of them are dead jobs")
}
