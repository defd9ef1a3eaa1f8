package cli

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// take waits for a message of a queue.
func take(t *testing.T, v *brokertest.Vhost, queue string) (taken amqp.Delivery) {
	t.Helper()
	brokertest.Eventually(t, func() (found bool) {
		taken, found = v.Get(t, queue)
		return found
	}, "a job arrives in %s", queue)
	return taken
}

func TestEnqueueWithoutSidecar(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	r := millrace(t, "enqueue", "Mail", "--amqp-url", v.AMQPURL())
	require.Equal(t, ExitFailed, r.code)
	require.Contains(t, r.err, "the broker has no exchange jobs.direct: start a sidecar")

	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	r = millrace(t, "enqueue", "Mail", "--amqp-url", v.AMQPURL())
	require.Equal(t, ExitFailed, r.code)
	require.Contains(t, r.err, "there is no queue.default, and no policy on jobs.direct")
	require.Empty(t, r.out)

	_, err := ch.QueueDeclare("queue.default", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.default", "default", wire.ExchangeDirect, false, nil))
	r = millrace(t, "enqueue", "Mail", `["ann"]`, "--tag", "a", "--tag", "b", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	d := take(t, v, "queue.default")
	require.Equal(t, strings.TrimSpace(r.out), gjson.GetBytes(d.Body, "jid").String())
	require.Equal(t, strings.TrimSpace(r.out), d.MessageId)
	require.Equal(t, "Mail", d.Type)
	require.Equal(t, `["a","b"]`, gjson.GetBytes(d.Body, "tags").Raw)

	r = millrace(t, "enqueue", "Mail", "-o", "json", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	jid := gjson.GetBytes(take(t, v, "queue.default").Body, "jid").String()
	require.JSONEq(t, `{"jid":"`+jid+`","class":"Mail","queue":"default"}`, r.out)
}

func TestScheduleWithoutSidecar(t *testing.T) {
	v := brokertest.New(t)
	r := millrace(t, "schedule", "Mail", "--at", "2126-12-24T18:00:00Z", "--amqp-url", v.AMQPURL())
	require.Equal(t, ExitFailed, r.code)
	require.Contains(t, r.err, "the broker has no stream scheduled_jobs")

	v.DeclareStream(t, wire.ScheduledJobs)
	r = millrace(t, "schedule", "Mail", "--at", "2126-12-24T18:00:00Z", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	records := v.ReadStream(t, wire.ScheduledJobs)
	require.Len(t, records, 1)
	entry, err := wire.ParseEntry(wire.ScheduledJobs, 0, records[0].Body)
	require.NoError(t, err)
	require.Equal(t, "2126-12-24T18:00:00Z", entry.At.Format("2006-01-02T15:04:05Z"))
	require.Equal(t, strings.TrimSpace(r.out), entry.JID)
}

func TestDelay(t *testing.T) {
	v := brokertest.New(t)
	v.DeclareStream(t, wire.ScheduledJobs)
	r := millrace(t, "delay", "orders", "order.unpaid", `{"order":42}`, "--in", "1h", "-H", "tenant=a b", "-H", "n=5", "-H", "list=[1,2.5]",
		"-p", "content_type=application/json", "-p", "priority=7", "-p", "timestamp=1795000000", "--retry", "3", "--tag", "x", "--amqp-url", v.AMQPURL())
	require.Zero(t, r.code, r.err)
	records := v.ReadStream(t, wire.ScheduledJobs)
	require.Len(t, records, 1)
	entry, err := wire.ParseEntry(wire.ScheduledJobs, 0, records[0].Body)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(r.out), entry.JID)
	require.Equal(t, []any{wire.MessageClass, wire.MessageQueue, []string{"x"}}, []any{entry.Job.Class, entry.Job.Queue, entry.Job.Tags})
	require.EqualValues(t, 3, gjson.GetBytes(records[0].Body, "job.retry").Int())
	require.JSONEq(t, `[{"exchange":"orders","routing_key":"order.unpaid","body":"{\"order\":42}","properties":{"content_type":"application/json",
		"priority":7,"timestamp":1795000000,"headers":{"tenant":"a b","n":5,"list":[1,2.5]}}}]`, gjson.GetBytes(records[0].Body, "job.args").Raw)

	for property, why := range map[string]string{
		"user_id=root": `unknown field "user_id"`, "priority=x": "write a whole number", "priority=256": "priority", "headers={}": "with --header",
		"expiration=1m": "expiration", "delivery_mode=3": "delivery_mode",
	} {
		r := millrace(t, "delay", "orders", "k", "b", "--in", "1h", "-p", property, "--amqp-url", v.AMQPURL())
		require.Equal(t, ExitUsage, r.code, property)
		require.Contains(t, r.err, why)
	}
}

func TestPublishErrorsNameReason(t *testing.T) {
	v := brokertest.New(t)
	reader := v.AddUser(t, "reader", brokertest.Permissions{Write: "^nothing$"})
	for _, args := range [][]string{{"enqueue", "Mail"}, {"schedule", "Mail", "--in", "1h"}, {"delay", "orders", "key", "--in", "1h"}} {
		r := millrace(t, append(args, "--amqp-url", "amqp://127.0.0.1:1")...)
		require.Equal(t, ExitFailed, r.code)
		require.Contains(t, r.err, "connection refused")

		v.DeclareStream(t, wire.ScheduledJobs)
		ch := v.Channel(t)
		require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
		r = millrace(t, append(args, "--amqp-url", reader.AMQPURL())...)
		require.Equal(t, ExitFailed, r.code)
		require.Contains(t, r.err, "ACCESS_REFUSED")
		require.NotContains(t, r.err, reader.Password)
	}
}
