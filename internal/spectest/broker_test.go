package spectest

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestJobsForUndeclaredQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	serve(t, v)
	c := python.client(t, v, "")
	names := []string{"unknown", "a.b c/d", "größe"}
	if v.Features(t).ASCIINamesOnly {
		names = names[:2]
	}
	for _, name := range names {
		job := `{ "jid":"1", "class":"SendEmailJob", "args":` + hardArgs + `, "queue":"` + name + `" }`
		publish(t, c, "jobs.direct", name, job)
		require.Equal(t, job, take(t, c, "queue."+name))
		publish(t, c, "jobs.direct", name, job)
		require.Equal(t, job, take(t, c, "queue."+name), "now that there is such a queue")
	}
}

// Clients may publish as soon as jobs.direct exists, even while Millrace still starts.
func TestJobsPublishedWhileMillraceStarts(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	launch(t, v)
	brokertest.Eventually(t, func() bool {
		conn := v.Dial(t)
		defer conn.Close()
		ch, err := conn.Channel()
		require.NoError(t, err)
		return ch.ExchangeDeclarePassive("jobs.direct", "direct", true, false, false, false, nil) == nil
	}, "jobs.direct is there")
	job := `{"jid":"1","class":"SendEmailJob","args":[],"queue":"early"}`
	v.Publish(t, "jobs.direct", "early", amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(job)})
	require.Equal(t, job, arrives(t, v, "queue.early").Raw)
}

// A message that the broker dead-letters becomes a dead job, with the broker's reason.
func TestDeadLettersBecomeDeadJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		die    func(t *testing.T, c *client, job string)
	}{
		{"rejected", func(t *testing.T, c *client, job string) {
			publish(t, c, "jobs.direct", "declared", job)
			require.Equal(t, job, reject(t, c, "queue.declared"))
		}},
		{"expired", func(t *testing.T, c *client, job string) { publish(t, c, "jobs.direct", "declared", job, "50") }},
	} {
		for _, declared := range []string{"by a client", "by Millrace"} {
			t.Run(c.reason+" in a queue declared "+declared, func(t *testing.T) {
				t.Parallel()
				v := brokertest.New(t)
				client := python.client(t, v, "")
				if declared == "by a client" {
					client.run(t, "declare", "queue.declared")
				}
				s := serve(t, v)
				publish(t, client, "jobs.direct", "declared", `{"class":"FirstJob","args":[]}`)
				take(t, client, "queue.declared")

				job := `{"jid":"7","class":"SendEmailJob","args":` + hardArgs + `,"queue":"declared","retry_count":3, "mine" : [ 1.0 ]}`
				c.die(t, client, job)
				record := s.holds(t, "dead-jobs", "7")
				dead := gjson.Parse(record)
				require.Equal(t, c.reason, dead.Get("error_class").String())
				require.Contains(t, dead.Get("error_message").String(), `queue "declared"`)
				require.Equal(t, int64(3), dead.Get("retry_count").Int())
				require.Equal(t, job, dead.Get("job").Raw)

				s.post(t, "/api/dead-jobs/7/retry")
				require.Equal(t, `{"jid":"7","class":"SendEmailJob","args":`+hardArgs+`,"queue":"declared","retry_count":0, "mine" : [ 1.0 ]}`,
					take(t, client, "queue.declared"))
			})
		}
	}
}

// Streams and queues keep messages that arrive while no sidecar runs.
func TestMessagesWhileMillraceIsDown(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	c := python.client(t, v, "")
	serve(t, v).stop(t)

	publish(t, c, "jobs.direct", "new", `{"jid":"1","class":"UnroutedJob","args":[],"queue":"new"}`)
	publish(t, c, "", "scheduled_jobs", `{"type":"scheduled_job","jid":"2","scheduled_at":1,"job":{"class":"DueJob","args":[],"queue":"due"}}`)
	c.run(t, "declare", "queue.dying")
	dying := `{"jid":"%s","class":"DyingJob","args":[],"queue":"dying"}`
	publish(t, c, "", "queue.dying", fmt.Sprintf(dying, "3"))
	reject(t, c, "queue.dying")
	publish(t, c, "", "queue.dying", fmt.Sprintf(dying, "4"), "1")

	s := serve(t, v)
	require.Equal(t, "1", gjson.Get(take(t, c, "queue.new"), "jid").String())
	require.Equal(t, "2", gjson.Get(take(t, c, "queue.due"), "jid").String())
	require.Equal(t, "rejected", gjson.Get(s.holds(t, "dead-jobs", "3"), "error_class").String())
	require.Equal(t, "expired", gjson.Get(s.holds(t, "dead-jobs", "4"), "error_class").String())
}
