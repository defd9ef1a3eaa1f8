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

func scheduled(jid string, at time.Time, job string) amqp.Publishing {
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil,
		`{"type":"scheduled_job","jid":%q,"scheduled_at":%f,"job":%s}`, jid, wire.Seconds(at), job)}
}

func job(class, queue string) string {
	return fmt.Sprintf(`{"class":%q,"args":[1,"two"],"queue":%q,"retry":25}`, class, queue)
}

func TestScheduledJobArrives(t *testing.T) {
	for _, native := range []bool{false, true} {
		t.Run(fmt.Sprintf("native=%v", native), func(t *testing.T) {
			v := brokertest.New(t)
			s := start(t, v, options{identity: "a", native: native}).leads(t)
			due := time.Now().Add(time.Second)
			v.Publish(t, "", wire.ScheduledJobs, scheduled("j1", due, job("Mail", "mails")))
			var got amqp.Delivery
			brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.mails") }, "its queue is made")
			brokertest.Eventually(t, func() (ok bool) {
				got, ok = v.Get(t, "queue.mails")
				return ok
			}, "the job arrives")
			for _, r := range v.ReadStream(t, wire.Gated) {
				_, fired := wire.DispatchOf(r.Headers)
				require.False(t, fired, "its queue was made before it was fired")
			}
			require.False(t, time.Now().Before(due), "it came early")
			require.Equal(t, "j1", got.MessageId)
			var body map[string]any
			require.NoError(t, json.Unmarshal(got.Body, &body))
			require.Equal(t, "j1", body["jid"])
			brokertest.Eventually(t, func() bool {
				d, err := s.entries.Doubts()
				require.NoError(t, err)
				return len(d) == 0 && s.entries.Total(wire.ScheduledJobs) == 0
			}, "the view forgets it")
		})
	}
}
