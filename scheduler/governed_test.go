package scheduler_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// governs defines a governed queue, in the operator's layer.
func (s *sidecar) governs(t *testing.T, definition string) wire.Reply {
	t.Helper()
	d := &wire.Definitions{Layer: wire.LayerOperator, Queues: []json.RawMessage{json.RawMessage(definition)}}
	return s.ask(t, wire.Command{Command: wire.CommandDefine, Definitions: d})
}

// awaitState waits until a governed queue has a state; empty means that it is governed no longer.
func (s *sidecar) awaitState(t *testing.T, queue, state string) {
	t.Helper()
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		q := s.entries.Governed.GovernedQueue(queue)
		return q == nil && state == "" || q != nil && q.State == state
	}, "queue %s is %q", queue, state)
}

// plain returns messages of jobs that know nothing of limits, and not even of their queue.
func plain(first, n int) (all []amqp.Publishing) {
	for i := range n {
		all = append(all, amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","args":[%d],"jid":"p%d"}`, (first+i)%3, first+i), DeliveryMode: amqp.Persistent})
	}
	return all
}

// A queue is governed and no longer governed while clients publish for it. Each job comes once. At
// most as many jobs are out as the queue may have ahead.
func TestQueueIsGoverned(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 3)...)
	require.Equal(t, 3, v.QueueLength(t, "queue.mails"))

	reply := s.governs(t, `{"name":"mails","key":"args.0","ahead":2}`)
	require.Equal(t, wire.StatusOK, reply.Status, reply.Reason)
	s.awaitState(t, "mails", wire.QueueDraining)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(3, 10)...)
	time.Sleep(2 * time.Second)
	require.Equal(t, 3, v.QueueLength(t, "queue.mails"), "no job passes those from before")
	got := map[string]int{}
	take := func() bool {
		d, ok := v.Get(t, "queue.mails")
		if ok {
			got[string(d.Body[len(d.Body)-4:])]++
			require.Contains(t, string(d.Body), `"p`)
		}
		return ok
	}
	for range 3 {
		require.True(t, take())
	}
	s.awaitState(t, "mails", wire.QueueGoverned)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.mails") == 2 }, "two jobs are out")
	time.Sleep(time.Second)
	require.Equal(t, 2, v.QueueLength(t, "queue.mails"), "no more are")
	d, ok := v.Get(t, "queue.mails")
	require.True(t, ok)
	require.Contains(t, string(d.Body), `"queue":"mails"`)
	require.NotEmpty(t, d.Headers[wire.HeaderSlot])

	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandForget, Governed: "mails"}).Status)
	s.awaitState(t, "mails", "")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.mails") == 9 }, "what waited is delivered")
	v.Publish(t, wire.ExchangeDirect, "mails", plain(13, 4)...)
	require.Equal(t, 13, v.QueueLength(t, "queue.mails"), "jobs come to their queue again")
}

// Without the alternate exchange no queue is governed, because jobs would be lost.
func TestQueueIsNotGovernedWithoutAlternateExchange(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	path := "/api/policies/" + v.Name + "/millrace-direct"
	brokertest.Eventually(t, func() bool { return v.Try(t.Context(), http.MethodGet, path, nil, nil) == nil }, "the policy is set")
	require.NoError(t, v.Try(t.Context(), http.MethodDelete, path, nil, nil))
	var reply wire.Reply
	brokertest.Eventually(t, func() bool {
		reply = s.governs(t, `{"name":"mails"}`)
		return reply.Status == wire.StatusDrifted && reply.Error == "precondition_failed"
	}, "the definition is refused")
	require.Contains(t, reply.Reason, "rabbitmqctl set_policy")
	require.Nil(t, s.entries.Governed.GovernedQueue("mails"))
}

// refuses checks that a job for the full queue mails is refused.
func refuses(t *testing.T, v *brokertest.Vhost, job amqp.Publishing) {
	t.Helper()
	ch := v.Channel(t)
	require.NoError(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), wire.ExchangeDirect, "mails", false, false, job)
	require.NoError(t, err)
	acked, err := confirm.WaitContext(t.Context())
	require.NoError(t, err)
	require.False(t, acked, "the queue is full")
}

// A full queue refuses jobs until a tenth of those that waited is gone.
func TestGovernedQueueIsFull(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	require.Equal(t, wire.StatusOK, s.governs(t, `{"name":"mails","max_waiting":10,"paused":true}`).Status)
	s.awaitState(t, "mails", wire.QueueGoverned)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 10)...)
	s.awaitState(t, "mails", wire.QueueFull)
	refuses(t, v, plain(10, 1)[0])

	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandResume, Governed: "mails"}).Status)
	s.awaitState(t, "mails", wire.QueueGoverned)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(11, 1)...)
	comeOnce(t, v, "queue.mails", 11)
}

// comeOnce takes jobs from a queue until there are so many, and no more.
func comeOnce(t *testing.T, v *brokertest.Vhost, queue string, n int) {
	t.Helper()
	seen := map[string]bool{}
	take := func() {
		for d, ok := v.Get(t, queue); ok; d, ok = v.Get(t, queue) {
			jid := gjson.GetBytes(d.Body, "jid").String()
			require.False(t, seen[jid], "%s came twice", jid)
			seen[jid] = true
		}
	}
	brokertest.Eventually(t, func() bool { take(); return len(seen) >= n }, "each job that was confirmed comes")
	time.Sleep(time.Second)
	take()
	require.Len(t, seen, n)
}

// While jobs.full cannot be used, a full queue takes jobs, and says so. None is lost, and the cap
// holds again when jobs.full is there.
func TestCapIsSuspendedWithoutItsQueue(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.Full, true, false, false, false, nil) // would take jobs and keep them
	require.NoError(t, err)
	require.Equal(t, wire.StatusOK, s.governs(t, `{"name":"mails","max_waiting":10,"paused":true}`).Status)
	s.awaitState(t, "mails", wire.QueueGoverned)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 10)...)
	s.awaitState(t, "mails", wire.QueueSuspended)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(10, 3)...)
	require.Zero(t, v.QueueLength(t, wire.Full))

	_, err = ch.QueueDelete(wire.Full, false, false, false)
	require.NoError(t, err)
	s.awaitState(t, "mails", wire.QueueFull)
	refuses(t, v, plain(13, 1)[0])
	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandResume, Governed: "mails"}).Status)
	comeOnce(t, v, "queue.mails", 13)
}

// A worker that knows nothing of slots works on a governed queue in rounds: the leader sees in the
// figures of the broker that jobs are gone. The limit holds.
func TestPlainWorkersOfGovernedQueue(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "mails")
	require.Equal(t, wire.StatusOK, s.governs(t, `{"name":"mails","key":"args.0"}`).Status)
	limits := []json.RawMessage{json.RawMessage(`{"name":"each","queues":["mails"],"per":["key"],"concurrency":2}`)}
	d := &wire.Definitions{Layer: wire.LayerOperator, Limits: limits}
	require.Equal(t, wire.StatusOK, s.ask(t, wire.Command{Command: wire.CommandDefine, Definitions: d}).Status)
	s.awaitState(t, "mails", wire.QueueGoverned)
	v.Publish(t, wire.ExchangeDirect, "mails", plain(0, 12)...)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.mails") == 6 }, "two jobs of each of three keys are out")
	began := time.Now()
	w := work(t, v, "mails", nil)
	jids := make([]string, 12)
	for i := range jids {
		jids[i] = fmt.Sprint("p", i)
	}
	brokertest.EventuallyWithin(t, 3*time.Minute, func() bool { return w.hasAll(jids) }, "the second round comes")
	require.Greater(t, time.Since(began), 30*time.Second, "no slot is freed before the figures are sure")
	t.Logf("a round took %v", time.Since(began).Round(time.Second))
	w.gets(t, jids...)
}
