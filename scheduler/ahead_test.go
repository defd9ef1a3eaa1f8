package scheduler_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// rates limits jobs to 50 a second, and publishes some. It returns their jids.
func (s *sidecar) rates(t *testing.T, v *brokertest.Vhost, queue string, n int) (jids []string) {
	t.Helper()
	d := &wire.Definitions{Layer: wire.LayerOperator, Limits: []json.RawMessage{json.RawMessage(`{"name":"api","rate":{"jobs":50,"seconds":1}}`)}}
	require.Equal(t, wire.StatusOK, s.ask(t, wire.Command{Command: wire.CommandDefine, Definitions: d}).Status)
	jobs := make([]amqp.Publishing, n)
	for i := range jobs {
		jids = append(jids, fmt.Sprint("r", i))
		jobs[i] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","args":[],"jid":"r%d","queue":%q,"gate":{}}`, i, queue), DeliveryMode: amqp.Persistent}
	}
	v.Publish(t, "", wire.Gated, jobs...)
	return jids
}

// While no one takes jobs, those that a rate counts wait at Millrace, and not in their queue. A
// consumer that says nothing gets them at the rate.
func TestRatedJobsDoNotPileUp(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	jids := s.rates(t, v, "mails", 400)
	var piled int
	brokertest.Eventually(t, func() bool {
		before := v.QueueLength(t, "queue.mails")
		time.Sleep(3 * time.Second)
		piled = v.QueueLength(t, "queue.mails")
		return piled > 0 && piled == before
	}, "no more are delivered")
	require.Less(t, piled, 300)
	w := work(t, v, "mails", nil)
	w.gets(t, jids...)
}

// As many rated jobs are in a queue and run as twice its workers say that they run at once.
func TestRatedJobsFollowWorkers(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a", workers: map[string]int64{"mails": 7}}).leads(t)
	ensure(t, v, "mails")
	jids := s.rates(t, v, "mails", 60)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.mails") == 14 }, "fourteen are delivered")
	time.Sleep(time.Second)
	require.Equal(t, 14, v.QueueLength(t, "queue.mails"), "no more are")

	seen := map[string]bool{}
	brokertest.Eventually(t, func() bool {
		d, ok := v.Get(t, "queue.mails")
		if ok {
			jid, slot := gjson.GetBytes(d.Body, "jid").String(), fmt.Sprint(d.Headers[wire.HeaderSlot])
			require.False(t, seen[jid], "%s came twice", jid)
			seen[jid] = true
			v.Publish(t, "", wire.JobEnds, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"ended","slot":%q}`, slot), DeliveryMode: amqp.Persistent})
		}
		return len(seen) == len(jids)
	}, "each end lets another one come")
}
