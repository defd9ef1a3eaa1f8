package gotest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// decides takes unique jobs as a leader does. The replies are given in order; an empty one is no
// answer.
func decides(t *testing.T, v *brokertest.Vhost, replies ...string) (jobs chan gjson.Result) {
	t.Helper()
	return answers(t, v, wire.Gated, replies)
}

func TestEnqueueUniqueSaysWhichJobStays(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	jobs := decides(t, v, `{"status":201,"jid":"mine"}`, `{"status":200,"jid":"mine","duplicate_of":"other"}`, `{"status":200,"jid":"other"}`,
		`{"status":503,"reason":"it is full"}`, `nonsense`, "")
	c := client(t, v.AMQPURL())
	enqueue := func(options EnqueueOptions) (Decision, error) {
		options.JID = "mine"
		return c.EnqueueUnique(t.Context(), Args("A", 1), &options)
	}
	stays, err := enqueue(EnqueueOptions{})
	require.NoError(t, err)
	require.Equal(t, Decision{JID: "mine"}, stays)
	require.JSONEq(t, `{"unique":{}}`, (<-jobs).Get("gate").Raw)
	for range 2 {
		stays, err = enqueue(EnqueueOptions{Unique: &Unique{Key: "k", For: time.Minute}, ScheduledAt: time.Unix(1800000000, 0)})
		require.NoError(t, err)
		require.Equal(t, Decision{JID: "other", Duplicate: true}, stays)
		require.JSONEq(t, `{"at":1800000000,"unique":{"key":"k","for":60}}`, (<-jobs).Get("gate").Raw)
	}
	_, err = enqueue(EnqueueOptions{})
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "it is full")
	_, err = enqueue(EnqueueOptions{})
	require.ErrorIs(t, err, ErrUndecided)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	stays, err = c.EnqueueUnique(ctx, Args("A", 1), &EnqueueOptions{JID: "late"})
	require.ErrorIs(t, err, ErrUndecided)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the job is published")
	require.Equal(t, Decision{JID: "late"}, stays)
}

// What was not sent is no undecided job, and a lost connection after the confirm is one.
func TestEnqueueUniqueThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	_, err := client(t, "amqp://guest:guest@127.0.0.1:1/").EnqueueUnique(shortly(t), Args("A"), nil)
	require.ErrorIs(t, err, ErrUnreachable)
	v := brokertest.New(t)
	c := client(t, v.AMQPURL())
	_, err = c.EnqueueUnique(t.Context(), Args("A"), &EnqueueOptions{Unique: &Unique{Max: time.Second}})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = c.EnqueueUnique(shortly(t), Args("A"), nil)
	require.ErrorIs(t, err, ErrRefused, "there is no jobs.gated")

	jobs := decides(t, v, "")
	ended := make(chan error)
	go func() {
		_, err := c.EnqueueUnique(t.Context(), Args("A"), nil)
		ended <- err
	}()
	<-jobs
	time.Sleep(100 * time.Millisecond) // for the confirm
	require.NoError(t, c.Close())
	require.ErrorIs(t, <-ended, ErrUndecided)
}

func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Middleware sees a job that is enqueued so, and may keep it.
func TestEnqueueUniqueThroughMiddleware(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	jobs := decides(t, v, `{"status":201,"jid":"x"}`)
	swallow := func(next EnqueueFunc) EnqueueFunc {
		return func(ctx context.Context, job *EnqueueParams) (string, error) {
			if job.Class() == "Swallowed" {
				return "", nil
			}
			job.Options.Tags = []string{"seen"}
			return next(ctx, job)
		}
	}
	c, err := NewClient(ClientConfig{URL: v.AMQPURL(), Middleware: []ClientMiddleware{swallow}})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	stays, err := c.EnqueueUnique(t.Context(), Args("Swallowed"), nil)
	require.NoError(t, err)
	require.Empty(t, stays)
	stays, err = c.EnqueueUnique(t.Context(), Args("A"), nil)
	require.NoError(t, err)
	require.Equal(t, "x", stays.JID)
	require.Equal(t, "seen", (<-jobs).Get("tags.0").String())
}

// A unique job is not periodic, and a message is not unique.
func TestWhatCannotBeUnique(t *testing.T) {
	t.Parallel()
	c := client(t, "amqp://guest:guest@127.0.0.1:1/")
	_, err := c.Define(t.Context(), "app", PeriodicJob{Name: "a", Every: time.Minute, Args: Args("A"), Options: &EnqueueOptions{Unique: &Unique{}}})
	require.ErrorIs(t, err, ErrInvalid)
	_, err = c.PublishIn(t.Context(), time.Minute, Message{Exchange: "orders"}, &EnqueueOptions{Unique: &Unique{}})
	require.ErrorIs(t, err, ErrInvalid)
}
