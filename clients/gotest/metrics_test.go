package gotest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// Metrics wait for the next connection, and none is lost: neither those of attempts whose delivery
// was lost, nor later ones.
func TestMetricsWaitForConnection(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	p := brokertest.NewProxy(t, v.AMQPURL())
	w := newTestWorker(t, WorkerConfig{URL: p.URL(), Concurrency: jobsAtOnce})
	release := make(chan struct{})
	w.Handle("Wait", w.says(func(context.Context, string) error { <-release; return nil }), nil)
	jobs := make([]EnqueueParams, jobsAtOnce)
	for i := range jobs {
		jobs[i] = EnqueueParams{Args: Args("Wait", "waits")}
	}
	_, err := client(t, v.AMQPURL()).EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)
	w.start(t)
	brokertest.Eventually(t, func() bool { return len(w.said.all()) == jobsAtOnce }, "all of them run")
	p.Cut(t)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == jobsAtOnce }, "the broker has them back")
	close(release)
	require.Empty(t, v.ReadStream(t, wire.JobMetrics))
	p.Heal(t)
	w.idle(t, v, "default")
	w.stop(t)
	attempts := map[string]int{}
	for _, d := range v.ReadStream(t, wire.JobMetrics) {
		require.NoError(t, wire.CheckMetrics(d.Body))
		for _, m := range gjson.ParseBytes(d.Body).Array() {
			attempts[m.Get("jid").String()]++
		}
	}
	require.Len(t, attempts, jobsAtOnce)
	for jid, n := range attempts {
		require.Equal(t, 2, n, "%s ran twice", jid)
	}
	require.Zero(t, w.dropped(t, v))
}

const jobsAtOnce = 50
