package gotest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// begins writes a record to the stream of begins.
func begins(t *testing.T, v *brokertest.Vhost, record map[string]any) {
	t.Helper()
	record["at"] = wire.Seconds(time.Now())
	text, err := json.Marshal(record)
	require.NoError(t, err)
	v.Publish(t, "", wire.JobBegins, amqp.Publishing{Body: text})
}

// deadProcess writes the records of a worker process that died.
func deadProcess(t *testing.T, v *brokertest.Vhost, id string) {
	t.Helper()
	begins(t, v, map[string]any{"type": "opened", "process": id, "identity": id, "queue": "amq.gen-of-" + id, "queues": []string{"default"}})
}

// peek takes a job out of its queue and returns it, so that it is redelivered.
func peek(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	ch := v.Channel(t)
	brokertest.Eventually(t, func() bool { // the broker does not report when a returned job is in its queue again
		d, ok, err := ch.Get("queue.default", false)
		require.NoError(t, err)
		return ok && d.Nack(false, true) == nil
	}, "there is a job")
}

// dying is a job that a process began before it died.
func dying(t *testing.T, v *brokertest.Vhost, id, jid string) {
	t.Helper()
	d, ok := v.Get(t, "queue.default")
	require.True(t, ok)
	sum := sha256.Sum256(d.Body)
	begins(t, v, map[string]any{"type": "begun", "process": id, "jid": jid, "body": hex.EncodeToString(sum[:8])})
	v.Publish(t, wire.ExchangeDirect, "default", amqp.Publishing{Body: d.Body, MessageId: jid})
	peek(t, v)
}

func TestPoison(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	jid := enqueue(t, v, "Die", "would kill", nil)
	peek(t, v)
	for _, id := range []string{"one", "two", "three"} {
		deadProcess(t, v, id)
	}
	for _, id := range []string{"one", "two", "three"} {
		dying(t, v, id, jid)
	}
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	w.Handle("Die", w.says(nil), nil)
	w.start(t)
	dead := recordOf(t, v, wire.DeadJobs, jid)
	require.Equal(t, "poison", dead.Get("reason").String())
	require.Equal(t, "its worker died 3 times while it ran", dead.Get("error_message").String())
	w.idle(t, v, "default")
	require.Empty(t, w.said.all())
	w.stop(t)
	require.Contains(t, types(t, v), `"begun","ended"`)
}

// TestPeekedIsNotPoison: the flag redelivered counts for nothing, and one death counts once.
func TestPeekedIsNotPoison(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	deadProcess(t, v, "other")
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), MaxDeaths: 2})
	w.Handle("Well", w.says(nil), nil)
	enqueue(t, v, "Well", "peeked", nil)
	for range 5 {
		peek(t, v)
	}
	w.start(t)
	w.said.has(t, "peeked")
	w.idle(t, v, "default")
	require.Empty(t, v.ReadStream(t, wire.DeadJobs))
}

// A job that is handed back has not ended, so the deaths before still count against it.
func TestHandedBackJobHasNotEnded(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	enqueue(t, v, "Patient", "patient", nil)
	peek(t, v)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL()})
	w.Handle("Patient", w.says(func(ctx context.Context, _ string) error {
		<-JobFrom(ctx).Stopping()
		return ErrHandBack
	}), nil)
	w.start(t)
	w.said.has(t, "patient")
	w.stop(t)
	require.Equal(t, `["opened","begun","closed"]`, types(t, v))
}

// TestWithoutStreamOfBegins works without a sidecar that has declared the stream.
func TestWithoutStreamOfBegins(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	ch := v.Channel(t)
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), MaxDeaths: 1})
	w.Handle("Well", w.says(func(context.Context, string) error { return nil }), nil)
	w.start(t)
	brokertest.Eventually(t, func() bool {
		_, err := v.Channel(t).QueueDeclarePassive("queue.default", true, false, false, false, nil)
		return err == nil
	}, "it declares its queue")
	require.NoError(t, ch.Publish("", "queue.default", false, false, amqp.Publishing{Body: []byte(`{"class":"Well","args":["well"]}`)}))
	w.said.has(t, "well")
}
