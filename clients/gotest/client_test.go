package gotest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestEnqueue(t *testing.T) {
	t.Parallel()
	v := vhost(t, "low")
	c := client(t, v.AMQPURL())
	jid, err := c.Enqueue(t.Context(), Args("Mail", "<ann@example.com>", 12345678901234567), &EnqueueOptions{Queue: "low", Priority: 3, Traceparent: "00-1-2-01"})
	require.NoError(t, err)
	d, ok := v.Get(t, "queue.low")
	require.True(t, ok, "a confirmed job is queued")
	require.Equal(t, jid, d.MessageId)
	require.Equal(t, "Mail", d.Type)
	require.EqualValues(t, 3, d.Priority)
	require.Equal(t, "00-1-2-01", d.Headers["traceparent"])
	require.Equal(t, `["<ann@example.com>",12345678901234567]`, gjson.GetBytes(d.Body, "args").Raw)

	in, err := c.EnqueueIn(t.Context(), time.Hour, Args("Mail"), nil)
	require.NoError(t, err)
	entry, err := wire.ParseEntry(wire.ScheduledJobs, 1, v.ReadStream(t, wire.ScheduledJobs)[0].Body)
	require.NoError(t, err)
	require.Equal(t, in, entry.JID)
	require.WithinDuration(t, time.Now().Add(time.Hour), entry.At, time.Minute)

	for name, job := range map[string]EnqueueParams{
		"no args": {}, "no class": {Args: Args("")}, "no JSON": {Args: Args("A", func() {})}, "too large": {Args: Args("A", string(make([]byte, 17<<20)))},
		"timeout": {Args: Args("A"), Options: EnqueueOptions{Timeout: -1}}, "field": {Args: Args("A"), Options: EnqueueOptions{Fields: map[string]any{"a": map[string]any{"\xff": 1}}}},
	} {
		_, err := c.Enqueue(t.Context(), job.Args, &job.Options)
		require.ErrorIs(t, err, ErrInvalid, name)
	}
}

// A delayed message is a scheduled job, which the sidecar reads.
func TestPublishIn(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c := client(t, v.AMQPURL())
	message := Message{Exchange: "orders", RoutingKey: "order.created", Body: []byte("\xff"), Properties: MessageProperties{Headers: map[string]any{"tenant": "a"}}}
	jid, err := c.PublishIn(t.Context(), time.Hour, message, &EnqueueOptions{Tags: []string{"web"}})
	require.NoError(t, err)
	record := recordOf(t, v, wire.ScheduledJobs, jid)
	require.InDelta(t, float64(time.Now().Add(time.Hour).Unix()), record.Get("scheduled_at").Num, 60)
	require.Equal(t, "millrace.Message", record.Get("job.class").String())
	require.Equal(t, "millrace.messages", record.Get("job.queue").String())
	require.Equal(t, `["web"]`, record.Get("job.tags").Raw)
	require.JSONEq(t, `[{"exchange":"orders","routing_key":"order.created","body_base64":"/w==","properties":{"headers":{"tenant":"a"}}}]`, record.Get("job.args").Raw)
}

func TestEnqueueRefused(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("queue.full", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish", "x-max-priority": 10})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.full", "full", wire.ExchangeDirect, false, nil))
	c := client(t, v.AMQPURL())
	jobs := []EnqueueParams{
		{Args: Args("A"), Options: EnqueueOptions{Queue: "full"}}, {Args: Args("A"), Options: EnqueueOptions{Queue: "full"}}, {Args: Args("A"), Options: EnqueueOptions{Queue: "nowhere"}},
		{Args: Args("A")}, {},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // a returned job is tried again until then
	defer cancel()
	results, err := c.EnqueueBulk(ctx, jobs)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "3 of 5 jobs were not enqueued")
	require.NoError(t, results[0].Err)
	require.ErrorIs(t, results[1].Err, ErrRefused)
	require.Regexp(t, "the queue is full.*try again later|NO_ROUTE", results[1].Err.Error(), "LavinMQ returns jobs that a full queue refuses")
	require.ErrorContains(t, results[2].Err, "NO_ROUTE")
	require.NoError(t, results[3].Err)
	require.ErrorIs(t, results[4].Err, ErrInvalid)
	require.NotEmpty(t, results[3].JID)

	_, err = c.Enqueue(t.Context(), Args("A"), nil)
	require.NoError(t, err, "the client works after a refusal")
}

func TestEnqueueUnreachable(t *testing.T) {
	t.Parallel()
	_, err := NewClient(ClientConfig{URL: "http://x"})
	require.Error(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c := client(t, "amqp://guest:guest@127.0.0.1:1/")
	_, err = c.Enqueue(ctx, Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable)
	_, err = c.EnqueueBulk(ctx, []EnqueueParams{{Args: Args("A")}})
	require.ErrorIs(t, err, ErrUnreachable)

	v := vhost(t)
	stranger, err := amqp.ParseURI(v.AMQPURL())
	require.NoError(t, err)
	stranger.Password = "wrong"
	_, err = client(t, stranger.String()).Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable, "immediately: a retry would not help")

	closed := client(t, v.AMQPURL())
	require.NoError(t, closed.Close())
	_, err = closed.Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrClosed)
}

// Without a broker, an enqueue ends at the client's timeout, and immediately with FailFast.
func TestEnqueueWithoutBroker(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]ClientConfig{
		"timeout": {Timeout: 300 * time.Millisecond}, "fail fast": {Timeout: time.Minute, FailFast: true},
	} {
		cfg.URL = "amqp://guest:guest@127.0.0.1:1/"
		c, err := NewClient(cfg)
		require.NoError(t, err)
		began := time.Now()
		for range 2 {
			_, err = c.Enqueue(t.Context(), Args("A"), nil)
			require.ErrorIs(t, err, ErrUnreachable, name)
			require.ErrorContains(t, err, "connection refused", name)
		}
		_, err = c.EnqueueBulk(t.Context(), []EnqueueParams{{Args: Args("A")}})
		require.ErrorIs(t, err, ErrUnreachable, name)
		require.Less(t, time.Since(began), 10*time.Second, name)
		require.NoError(t, c.Close())
	}
}

// A refusal ends the first connection attempt of a client. Later it is tried again, because a
// broker that is starting refuses too.
func TestEnqueueAfterRefusal(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	u := v.AddUser(t, "producer", brokertest.Permissions{})
	p := brokertest.NewProxy(t, u.AMQPURL())
	c := client(t, p.URL())
	_, err := c.Enqueue(t.Context(), Args("A"), nil)
	require.NoError(t, err)

	permissions := "/api/permissions/" + v.Name + "/" + u.Name
	v.Do(t, http.MethodDelete, permissions, nil, nil)
	p.Cut(t)
	p.Heal(t)
	_, err = client(t, p.URL()).Enqueue(t.Context(), Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable)
	enqueued := make(chan error)
	go func() {
		_, err := c.Enqueue(t.Context(), Args("A"), nil)
		enqueued <- err
	}()
	select {
	case err := <-enqueued:
		require.NoError(t, err)
		require.FailNow(t, "its connection was accepted")
	case <-time.After(time.Second):
	}
	v.Do(t, http.MethodPut, permissions, map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
	require.NoError(t, <-enqueued)
}

// TestEnqueueWithNetworkFailures cuts the network again and again. A job whose enqueue returned no
// error is in its queue.
func TestEnqueueWithNetworkFailures(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	c := client(t, p.URL())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4 {
			brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") > i*300 }, "some jobs arrived")
			p.Cut(t)
			p.Heal(t)
		}
	}()
	seen := map[string]bool{}
	for i := range 20 {
		jobs := make([]EnqueueParams, 100)
		for n := range jobs {
			jobs[n] = EnqueueParams{Args: Args("A", fmt.Sprint(i, n))}
		}
		results, err := c.EnqueueBulk(t.Context(), jobs)
		require.NoError(t, err)
		jid, err := c.Enqueue(t.Context(), Args("A", i), nil)
		require.NoError(t, err)
		seen[jid] = true
		for _, r := range results {
			seen[r.JID] = true
		}
	}
	<-done
	require.Len(t, seen, 20*101)
	for range v.QueueLength(t, "queue.default") {
		d, ok := v.Get(t, "queue.default")
		require.True(t, ok)
		delete(seen, d.MessageId)
	}
	require.Empty(t, seen, "nothing is lost")
}

func TestEnqueueUnconfirmed(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	c := client(t, p.URL())
	_, err := c.Enqueue(t.Context(), Args("A"), nil)
	require.NoError(t, err)
	p.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	bulk := make(chan []Result)
	go func() {
		results, _ := c.EnqueueBulk(ctx, []EnqueueParams{{Args: Args("B")}, {}}) // each result has its error
		bulk <- results
	}()
	jid, err := c.Enqueue(ctx, Args("A"), nil)
	require.ErrorIs(t, err, ErrUnconfirmed)
	require.NotEmpty(t, jid)
	var unconfirmed *UnconfirmedError
	require.ErrorAs(t, err, &unconfirmed)
	require.Equal(t, jid, unconfirmed.JID)
	require.ErrorContains(t, err, jid)
	results := <-bulk
	require.ErrorIs(t, results[0].Err, ErrUnconfirmed)
	require.NotEmpty(t, results[0].JID)
	require.Empty(t, results[1].JID)
	p.Heal(t)
	again, err := c.Enqueue(t.Context(), Args("A"), &EnqueueOptions{JID: jid})
	require.NoError(t, err)
	require.Equal(t, jid, again, "it can be enqueued again under the same jid")
	seen := map[string]bool{}
	brokertest.Eventually(t, func() bool {
		if d, ok := v.Get(t, "queue.default"); ok {
			seen[d.MessageId] = true
		}
		return seen[jid]
	}, "it is there")
}

// If a client is closed while a publish is unanswered, the error says that the job may have
// arrived.
func TestCloseWhileUnconfirmed(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	c := client(t, p.URL())
	_, err := c.Enqueue(t.Context(), Args("A"), nil)
	require.NoError(t, err)
	p.Mute(t)
	ended := make(chan error)
	go func() {
		_, err := c.Enqueue(t.Context(), Args("A"), nil)
		ended <- err
	}()
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 2 }, "it has arrived")
	go c.Close()
	brokertest.Eventually(t, func() bool {
		_, err := c.Enqueue(t.Context(), Args("A"), nil)
		return errors.Is(err, ErrClosed)
	}, "it is closed")
	p.Heal(t) // which ends the connection
	err = <-ended
	require.ErrorIs(t, err, ErrUnconfirmed)
	require.ErrorContains(t, err, ErrClosed.Error())
	require.NotErrorIs(t, err, ErrClosed, "that would mean that the broker does not have it")
	var unconfirmed *UnconfirmedError
	require.ErrorAs(t, err, &unconfirmed)
	require.NotEmpty(t, unconfirmed.JID)
}

func TestClientMiddleware(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	var order []string
	named := func(name string) ClientMiddleware {
		return func(next EnqueueFunc) EnqueueFunc {
			return func(ctx context.Context, job *EnqueueParams) (string, error) {
				order = append(order, name)
				if job.Class() == "Never" {
					return "", nil
				}
				job.Options.Tags = append(job.Options.Tags, name)
				return next(ctx, job)
			}
		}
	}
	c, err := NewClient(ClientConfig{URL: v.AMQPURL(), Middleware: []ClientMiddleware{named("outer"), named("inner")}})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.EnqueueBulk(t.Context(), []EnqueueParams{{Args: Args("A")}})
	require.NoError(t, err)
	jid, err := c.Enqueue(t.Context(), Args("Never"), nil)
	require.NoError(t, err)
	require.Empty(t, jid)
	require.Equal(t, []string{"outer", "inner", "outer"}, order)
	require.Equal(t, 1, v.QueueLength(t, "queue.default"))
	d, _ := v.Get(t, "queue.default")
	require.Equal(t, `["outer","inner"]`, gjson.GetBytes(d.Body, "tags").Raw)
}
