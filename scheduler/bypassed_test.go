package scheduler_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// directTo returns where jobs.direct leads a queue's jobs.
func directTo(t *testing.T, v *brokertest.Vhost, queue string) []string {
	t.Helper()
	var said []struct {
		Key         string `json:"routing_key"`
		Destination string `json:"destination"`
	}
	require.NoError(t, v.Try(t.Context(), http.MethodGet, "/api/exchanges/"+v.Name+"/jobs.direct/bindings/source", nil, &said))
	all := []string{}
	for _, b := range said {
		if b.Key == queue {
			all = append(all, b.Destination)
		}
	}
	return all
}

// governsFree governs a queue, and waits until nothing is bound for it.
func (s *sidecar) governsFree(t *testing.T, v *brokertest.Vhost, definition string) {
	t.Helper()
	require.Equal(t, wire.StatusOK, s.governs(t, definition).Status)
	s.awaitState(t, "mails", wire.QueueGoverned)
	s.awaitDirect(t, v, "mails")
}

// awaitDirect waits until jobs.direct leads a queue's jobs to some queues.
func (s *sidecar) awaitDirect(t *testing.T, v *brokertest.Vhost, queue string, want ...string) {
	t.Helper()
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		got := directTo(t, v, queue)
		return len(got) == len(want) && (len(want) == 0 || got[0] == want[0])
	}, "jobs for %s go to %v", queue, want)
}

// Workers bind their queue whenever they start, while jobs are published. Each job comes once.
func TestWorkersThatBindTheirQueueGetEachJobOnce(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	s.governsFree(t, v, `{"name":"mails","ahead":1000}`)
	w := work(t, v, "mails", nil)
	ch := v.Channel(t)
	var jids []string
	for i := range 40 {
		require.NoError(t, ch.QueueBind("queue.mails", "mails", wire.ExchangeDirect, false, nil))
		for _, m := range plain(i*10, 10) {
			var job struct{ JID string }
			require.NoError(t, json.Unmarshal(m.Body, &job))
			jids = append(jids, job.JID)
			v.Publish(t, wire.ExchangeDirect, "mails", m)
		}
		if i%4 == 3 { // the leader removes the binding meanwhile
			s.awaitDirect(t, v, "mails")
		}
	}
	w.gets(t, jids...)
	s.awaitState(t, "mails", wire.QueueBypassed)
}

// A leader of an older version has left jobs.gated bound, and with it a job would be in two places.
func TestBindingOfOlderLeaderIsRemoved(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	s.governsFree(t, v, `{"name":"mails"}`)
	require.NoError(t, v.Channel(t).QueueBind(wire.Gated, "mails", wire.ExchangeDirect, false, nil))
	s.awaitDirect(t, v, "mails")
}

// hasPolicy reports whether a policy of this name is set.
func hasPolicy(t *testing.T, v *brokertest.Vhost, name string) bool {
	t.Helper()
	return v.Try(t.Context(), http.MethodGet, "/api/policies/"+v.Name+"/"+name, nil, nil) == nil
}

// The policy of an operator applies to all exchanges, and takes no job away. If it has a higher
// priority, jobs.gated is bound, and the queue works on.
func TestGovernedQueueKeepsJobsDespiteOperatorsPolicy(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	s.governsFree(t, v, `{"name":"mails","paused":true}`)
	sent := 0
	publish := func() {
		v.Publish(t, wire.ExchangeDirect, "mails", plain(sent, 1)...)
		sent++
	}
	put := func(name string, priority int) {
		body := map[string]any{"pattern": "^jobs[.]direct", "apply-to": "all", "priority": priority, "definition": map[string]any{"max-length": 1000000}}
		require.NoError(t, v.Try(t.Context(), http.MethodPut, "/api/policies/"+v.Name+"/"+name, body, nil))
	}
	drop := func(name string) {
		require.NoError(t, v.Try(t.Context(), http.MethodDelete, "/api/policies/"+v.Name+"/"+name, nil, nil))
	}
	waiting := func() int { return int(s.entries.InQueue(wire.Gated, "mails")) }
	publish()
	put("theirs", 0)
	for range 20 {
		publish()
	}
	require.Empty(t, directTo(t, v, "mails"), "the policy with the higher priority applies")
	drop("millrace-governed") // jobs.gated is bound, and the policy set again
	drop("theirs")
	brokertest.Eventually(t, func() bool { return hasPolicy(t, v, "millrace-governed") }, "the policy is set again")
	s.awaitDirect(t, v, "mails")
	brokertest.Eventually(t, func() bool { publish(); return waiting() > 25 }, "jobs are taken")
	drop("millrace-direct")
	for range 20 {
		publish()
	}
	brokertest.Eventually(t, func() bool { return hasPolicy(t, v, "millrace-governed") && hasPolicy(t, v, "millrace-direct") }, "the policies are set again")
	s.awaitDirect(t, v, "mails")
	brokertest.Eventually(t, func() bool { return waiting() == sent }, "no job is lost")
}

// Both policies are removed. From the moment when jobs.gated is bound, no job is lost.
func TestJobsAreCaughtWhenAlternateExchangeIsGone(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	s.governsFree(t, v, `{"name":"mails","paused":true}`)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 1)...)
	body := map[string]any{"pattern": `^jobs\.direct$`, "apply-to": "exchanges", "priority": 5000, "definition": map[string]any{"alternate-exchange": "amq.fanout"}}
	require.NoError(t, v.Try(t.Context(), http.MethodPut, "/api/policies/"+v.Name+"/theirs", body, nil))
	began := time.Now()
	s.awaitDirect(t, v, "mails", wire.Gated)
	t.Logf("jobs.gated was bound after %v", time.Since(began).Round(10*time.Millisecond))
	v.Publish(t, wire.ExchangeDirect, "mails", plain(1, 5)...)
	brokertest.Eventually(t, func() bool { return s.entries.InQueue(wire.Gated, "mails") == 6 }, "jobs are caught")

	require.NoError(t, v.Channel(t).QueueBind("queue.mails", "mails", wire.ExchangeDirect, false, nil))
	s.awaitDirect(t, v, "mails", wire.Gated)
	s.awaitState(t, "mails", wire.QueueBypassed)
	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandForget, Governed: "mails"}).Status)
	s.awaitDirect(t, v, "mails", "queue.mails")
	s.awaitState(t, "mails", "")
}

// The policy that is only there for governed queues goes with the last of them.
func TestPolicyOfGovernedQueuesGoesWithThem(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	s.governsFree(t, v, `{"name":"mails"}`)
	require.True(t, hasPolicy(t, v, "millrace-governed"))
	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandForget, Governed: "mails"}).Status)
	brokertest.Eventually(t, func() bool { return !hasPolicy(t, v, "millrace-governed") }, "it is removed")
	s.awaitDirect(t, v, "mails", "queue.mails")
}

// A leader dies while a queue is draining. The next one continues, and delivers nothing before the
// messages from before are gone.
func TestNextLeaderContinuesDraining(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 2)...)
	require.Equal(t, wire.StatusOK, s.governs(t, `{"name":"mails"}`).Status)
	s.awaitState(t, "mails", wire.QueueDraining)
	s.stop()
	v.Publish(t, wire.ExchangeDirect, "mails", plain(2, 2)...) // no leader catches them

	s = start(t, v, options{identity: "b"}).leads(t)
	brokertest.Eventually(t, func() bool { return s.entries.InQueue(wire.Gated, "mails") == 2 }, "they wait")
	require.Equal(t, wire.QueueDraining, s.entries.Governed.GovernedQueue("mails").State)
	require.Equal(t, 2, v.QueueLength(t, "queue.mails"))
	work(t, v, "mails", nil).gets(t, "p0", "p1", "p2", "p3")
	s.awaitState(t, "mails", wire.QueueGoverned)
}
