package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

// A node is down that hosts the dead letters, a metrics stream and the last leader's witness. The
// next leader fires without them. It fires again what is in doubt. When the node is back, the
// leader takes over dead letters without a restart.
func TestLeaderFiresWithoutUnavailableQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	m := reign(t, v)
	ensure(t, v, "q")
	doubted := names("doubted", 3)
	schedule(t, v, time.Now(), "q", doubted...)
	for _, jid := range doubted {
		require.NoError(t, m.fire(wire.ExchangeFire, jid, "q"))
	}
	m.die()
	away := []string{wire.DeadLetters, wire.JobMetrics, wire.WitnessPrefix + "mortal"}
	for _, queue := range away {
		v.SetQueueState(t, queue, "crashed")
	}

	s := start(t, v, options{identity: "a"}).leads(t)
	w := work(t, v, "q", nil)
	schedule(t, v, time.Now(), "q", "new")
	w.gets(t, "new")
	for _, jid := range doubted {
		brokertest.Eventually(t, func() bool { return w.times(jid) == 2 }, "%s is fired again: its witness says nothing", jid)
	}
	degraded := func() (all []string) {
		for _, d := range s.Status().Degraded {
			all = append(all, d.Subject)
		}
		return all
	}
	brokertest.Eventually(t, func() bool { return slices.Equal(degraded(), []string{"queue job_metrics", "queue jobs.letters"}) }, "both are degraded")
	require.Empty(t, s.Status().Lacks)

	for _, queue := range away {
		v.SetQueueState(t, queue, "live")
	}
	v.Publish(t, wire.ExchangeDead, "", amqp.Publishing{Body: []byte(`{"class":"C","jid":"dead"}`)})
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.DeadJobs) == 1 }, "the letter is a dead job")
	brokertest.Eventually(t, func() bool { return len(degraded()) == 0 }, "nothing is degraded")
	require.Equal(t, int64(1), s.Status().Counters.Epochs, "it is the same leader")
}

// The witness of a node cannot be reached. That ends no epoch of the next leader, which fires.
func TestLeaderFiresWithoutWitness(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	first := start(t, v, options{identity: "first"}).leads(t)
	brokertest.Eventually(t, func() bool { return first.entries.State().Witness != "" }, "there is a witness")
	node, _, named := strings.Cut(first.entries.State().Witness, "=")
	require.True(t, named)
	first.stop()
	v.SetQueueState(t, broker.WitnessQueue(node), "crashed")
	s := start(t, v, options{identity: "a"}).leads(t)
	schedule(t, v, time.Now(), "q", "new")
	work(t, v, "q", nil).gets(t, "new")
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}

// An entry stream that is unavailable keeps a sidecar from leading, and the status shows that. The
// sidecar leads when the stream is back.
func TestNoLeaderWithoutEntryStream(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	first := start(t, v, options{identity: "first"}).leads(t)
	first.stop()
	v.SetQueueState(t, wire.Retries, "crashed")
	s := start(t, v, options{identity: "a"})
	brokertest.Eventually(t, func() bool { return s.Status().Lacks != "" }, "the status names the missing stream")
	require.Contains(t, s.Status().Lacks, "retries")
	require.False(t, s.Status().Leader)
	v.SetQueueState(t, wire.Retries, "live")
	s.leads(t)
	require.Equal(t, scheduler.Status{}.Lacks, s.Status().Lacks)
}
