package gotest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// returns counts the messages that the broker returns to a client.
type returns struct {
	atomic.Int32
	client net.Conn
}

// Write passes on what the broker sends.
func (r *returns) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("NO_ROUTE")) {
		r.Add(1)
	}
	return r.client.Write(p)
}

// watched returns a client, and a counter of the messages that the broker returns to it.
func watched(t *testing.T, v *brokertest.Vhost, m ...ClientMiddleware) (*Client, *returns) {
	t.Helper()
	u, err := url.Parse(v.AMQPURL())
	require.NoError(t, err)
	address := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	seen := &returns{}
	go func() {
		var err error
		if seen.client, err = l.Accept(); err != nil {
			return
		}
		defer seen.client.Close()
		broker, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		go func() {
			defer broker.Close()
			_, _ = io.Copy(broker, seen.client)
		}()
		_, _ = io.Copy(seen, broker)
	}()
	u.Host = l.Addr().String()
	return withMiddleware(t, u.String(), m...), seen
}

// bind binds a queue for jobs.
func bind(t *testing.T, v *brokertest.Vhost, queue string) {
	t.Helper()
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("queue."+queue, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue."+queue, queue, wire.ExchangeDirect, false, nil))
}

func to(queue string) *EnqueueOptions { return &EnqueueOptions{Queue: queue} }

func TestReturnedJobIsPublishedAgain(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c, returns := watched(t, v)
	jids := make(chan string, 1)
	go func() {
		jid, err := c.Enqueue(t.Context(), Args("A"), to("later"))
		if err != nil {
			t.Error(err)
		}
		jids <- jid
	}()
	brokertest.Eventually(t, func() bool { return returns.Load() > 0 }, "the broker returns it")
	bind(t, v, "later")
	jid := <-jids
	require.Equal(t, 1, v.QueueLength(t, "queue.later"))
	d, _ := v.Get(t, "queue.later")
	require.Equal(t, jid, d.MessageId)
}

func TestReturnedJobsOfABulkArePublishedAgain(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c, returns := watched(t, v)
	var jobs []EnqueueParams
	for _, queue := range []string{"later", "default", "later"} {
		jobs = append(jobs, EnqueueParams{Args: Args("A"), Options: *to(queue)})
	}
	ended := make(chan []Result, 1)
	go func() {
		results, err := c.EnqueueBulk(t.Context(), jobs)
		if err != nil {
			t.Error(err)
		}
		ended <- results
	}()
	brokertest.Eventually(t, func() bool { return returns.Load() > 0 && v.QueueLength(t, "queue.default") == 1 }, "the others wait for nothing")
	bind(t, v, "later")
	for _, r := range <-ended {
		require.NotEmpty(t, r.JID)
	}
	require.Equal(t, 2, v.QueueLength(t, "queue.later"))
	require.Equal(t, 1, v.QueueLength(t, "queue.default"))
}

func TestAlwaysReturnedJobIsRefused(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c := client(t, v.AMQPURL())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	jid, err := c.Enqueue(ctx, Args("A"), to("nowhere"))
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "312 NO_ROUTE")
	require.ErrorContains(t, err, "; tried for ")
	require.Empty(t, jid)
}

// If a bulk is published in parts, because of middleware, a returned job leaves time for the later
// ones.
func TestReturnedJobLeavesTimeForLaterParts(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c := withMiddleware(t, v.AMQPURL(), func(next EnqueueFunc) EnqueueFunc { return next })
	jobs := make([]EnqueueParams, 1001)
	for i := range jobs {
		jobs[i].Args = Args("A")
	}
	jobs[0].Options.Queue = "nowhere"
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	results, err := c.EnqueueBulk(ctx, jobs)
	require.ErrorContains(t, err, "1 of 1001 jobs were not enqueued")
	require.ErrorIs(t, results[0].Err, ErrRefused)
	require.Equal(t, 1000, v.QueueLength(t, "queue.default"))
}

// ways to enqueue a job for a queue that is missing.
var ways = map[string]func(context.Context, *Client) error{
	"one": func(ctx context.Context, c *Client) error {
		_, err := c.Enqueue(ctx, Args("A"), to("nowhere"))
		return err
	},
	"bulk": func(ctx context.Context, c *Client) error {
		results, _ := c.EnqueueBulk(ctx, []EnqueueParams{{Args: Args("A"), Options: *to("nowhere")}})
		return results[0].Err
	},
}

// betweenTries enqueues a job that is returned, ends that before the next try, and returns its
// error.
func betweenTries(t *testing.T, v *brokertest.Vhost, enqueue func(context.Context, *Client) error, end func(*Client, context.CancelFunc)) (err error) {
	t.Helper()
	for range 5 { // on a busy machine the next try may have begun
		c, returns := watched(t, v)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- enqueue(ctx, c) }()
		brokertest.Eventually(t, func() bool { return returns.Load() > 3 }, "the broker returns it again and again")
		end(c, cancel)
		if err = <-ended; !errors.Is(err, ErrUnconfirmed) {
			break
		}
	}
	return err
}

// A job that was returned, and not yet published again, is not in the broker.
func TestCloseBetweenTries(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	for name, enqueue := range ways {
		err := betweenTries(t, v, enqueue, func(c *Client, _ context.CancelFunc) { c.Close() })
		require.ErrorIs(t, err, ErrClosed, name)
		require.NotErrorIs(t, err, ErrRefused, name)
	}
}

func TestCancelBetweenTries(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	for name, enqueue := range ways {
		err := betweenTries(t, v, enqueue, func(_ *Client, cancel context.CancelFunc) { cancel() })
		require.ErrorIs(t, err, ErrRefused, name)
		require.ErrorIs(t, err, context.Canceled, name)
	}
}
