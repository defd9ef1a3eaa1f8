package gotest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func withMiddleware(t *testing.T, url string, m ...ClientMiddleware) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{URL: url, Middleware: m})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// Middleware does not slow a bulk down: hundreds of jobs are sent before the first confirm is
// awaited.
func TestBulkThroughMiddleware(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	var lock sync.Mutex
	var in, out []string
	turns := 0
	c := withMiddleware(t, v.AMQPURL(), func(next EnqueueFunc) EnqueueFunc {
		return func(ctx context.Context, job *EnqueueParams) (string, error) {
			lock.Lock()
			if len(in) == len(out) {
				turns++ // nothing is in flight
			}
			in = append(in, job.Options.JID)
			lock.Unlock()
			jid, err := next(ctx, job)
			lock.Lock()
			defer lock.Unlock()
			out = append(out, jid)
			return jid, err
		}
	})
	jobs := make([]EnqueueParams, 1100) // more than are sent before a confirm is awaited
	var want []string
	for i := range jobs {
		want = append(want, fmt.Sprint(i))
		jobs[i] = EnqueueParams{Args: Args("A"), Options: EnqueueOptions{JID: fmt.Sprint(i)}}
	}
	results, err := c.EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)
	require.Equal(t, want, in)
	require.Equal(t, want, out)
	require.Less(t, turns, 100, "2 on an idle machine")
	for i, r := range results {
		require.Equal(t, Result{JID: fmt.Sprint(i)}, r)
		d, ok := v.Get(t, "queue.default")
		require.True(t, ok)
		require.Equal(t, r.JID, d.MessageId, "they are in order")
	}
}

// Middleware that lets only one job at a time past next, as a lock does, delays a bulk no more than
// single enqueues.
func TestBulkThroughMiddlewareWithLock(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	var lock sync.Mutex
	c := withMiddleware(t, v.AMQPURL(), func(next EnqueueFunc) EnqueueFunc {
		return func(ctx context.Context, job *EnqueueParams) (string, error) {
			lock.Lock()
			defer lock.Unlock()
			return next(ctx, job)
		}
	})
	jobs := make([]EnqueueParams, 5)
	for i := range jobs {
		jobs[i] = EnqueueParams{Args: Args("A"), Options: EnqueueOptions{JID: fmt.Sprint(i)}}
	}
	results, err := c.EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)
	for i, r := range results {
		require.Equal(t, fmt.Sprint(i), r.JID)
	}
	require.Equal(t, len(jobs), v.QueueLength(t, "queue.default"))
}

// Middleware can do with each job of a bulk what it can do with a single job: change it, swallow
// it, fail, call next again, or in another goroutine.
func TestBulkMiddlewareMayDoAnything(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	failed := errors.New("not allowed")
	answers := make(chan error, 1)
	c := withMiddleware(t, v.AMQPURL(), func(next EnqueueFunc) EnqueueFunc {
		return func(ctx context.Context, job *EnqueueParams) (string, error) {
			switch job.Class() {
			case "Swallowed":
				return "", nil
			case "Fails":
				return "", failed
			case "Again":
				job.Options.Queue = "nowhere"
				_, err := next(ctx, job)
				answers <- err
				job.Options.Queue = "default"
			case "Elsewhere":
				type answer struct {
					jid string
					err error
				}
				answered := make(chan answer)
				go func() {
					jid, err := next(ctx, job)
					answered <- answer{jid, err}
				}()
				a := <-answered
				return a.jid, a.err
			case "Twice":
				if _, err := next(ctx, job); err != nil {
					return "", err
				}
			case "Late":
				ctx, cancel := context.WithTimeout(ctx, 0)
				defer cancel()
				return next(ctx, job)
			}
			return next(context.WithoutCancel(ctx), job)
		}
	})
	var jobs []EnqueueParams
	for _, class := range []string{"Swallowed", "Fails", "Again", "", "Elsewhere", "Twice", "Late", "A"} {
		jobs = append(jobs, EnqueueParams{Args: Args(class), Options: EnqueueOptions{JID: class}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // a job without a queue is tried again until then
	defer cancel()
	results, err := c.EnqueueBulk(ctx, jobs)
	require.ErrorContains(t, err, "3 of 8 jobs were not enqueued")
	require.ErrorContains(t, err, "job 1, Fails: not allowed")
	require.ErrorIs(t, <-answers, ErrRefused)
	require.Equal(t, Result{}, results[0])
	require.ErrorIs(t, results[1].Err, failed)
	require.ErrorIs(t, results[3].Err, ErrInvalid)
	require.ErrorIs(t, results[6].Err, ErrUnconfirmed)
	for i, jid := range map[int]string{2: "Again", 4: "Elsewhere", 5: "Twice", 6: "Late", 7: "A"} {
		require.Equal(t, jid, results[i].JID)
	}
	got := map[string]int{}
	for range v.QueueLength(t, "queue.default") {
		d, ok := v.Get(t, "queue.default")
		require.True(t, ok)
		got[d.MessageId]++
	}
	require.Equal(t, map[string]int{"Again": 1, "Elsewhere": 1, "Twice": 2, "Late": 1, "A": 1}, got)
}

// Middleware that panics, or ends its goroutine, ends the call in the same manner. The jobs before
// it are enqueued.
func TestMiddlewareThatPanics(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	c := withMiddleware(t, v.AMQPURL(), func(next EnqueueFunc) EnqueueFunc {
		return func(ctx context.Context, job *EnqueueParams) (string, error) {
			switch job.Class() {
			case "Panic":
				panic("help")
			case "Goexit":
				runtime.Goexit()
			}
			return next(ctx, job)
		}
	})
	for _, class := range []string{"Panic", "Goexit"} {
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			_, _ = c.EnqueueBulk(context.Background(), []EnqueueParams{{Args: Args("A")}, {Args: Args(class)}, {Args: Args("B")}})
			t.Error("it has not ended")
		}()
		require.Equal(t, map[string]any{"Panic": "help", "Goexit": nil}[class], <-ended)
	}
	require.Equal(t, 2, v.QueueLength(t, "queue.default"))
}

// If a connection is lost while jobs of a bulk are unanswered, no job is lost, their order is kept,
// and middleware gets each result.
func TestBulkThroughMiddlewareWithNetworkFailures(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	c := withMiddleware(t, p.URL(), func(next EnqueueFunc) EnqueueFunc { return next })
	_, err := c.Enqueue(t.Context(), Args("A"), &EnqueueOptions{JID: "first"})
	require.NoError(t, err)
	p.Freeze(t)
	jobs := make([]EnqueueParams, 20)
	for i := range jobs {
		jobs[i] = EnqueueParams{Args: Args("A"), Options: EnqueueOptions{JID: fmt.Sprint(i)}}
	}
	healed := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() {
		defer close(healed)
		p.Heal(t)
	})
	results, err := c.EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)
	<-healed
	for i, r := range results {
		require.Equal(t, fmt.Sprint(i), r.JID)
	}
	var order []string
	for range v.QueueLength(t, "queue.default") {
		d, ok := v.Get(t, "queue.default")
		require.True(t, ok)
		order = append(order, d.MessageId)
	}
	require.Equal(t, "first", order[0])
	require.Len(t, order, 21, "jobs that were sent into the frozen network never arrived")
	for i := range jobs {
		require.Equal(t, fmt.Sprint(i), order[i+1])
	}
}
