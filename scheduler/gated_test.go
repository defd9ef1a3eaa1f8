package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// firesThatFoundNoQueue counts the fires that came back as records of jobs.gated.
func firesThatFoundNoQueue(t *testing.T, v *brokertest.Vhost) (n int) {
	t.Helper()
	for _, d := range v.ReadStream(t, wire.Gated) {
		if _, fired := wire.DispatchOf(d.Headers); fired {
			n++
		}
	}
	return n
}

// A leader that crashes in the first seconds of a new queue, or stops while the broker is slow,
// duplicates neither fires nor jobs of clients.
func TestLeaderCrashWhileQueueIsNew(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	settings := options{identity: "a", amqpURL: proxy.URL(), native: v.StreamURL() != ""}
	s := start(t, v, settings).leads(t)
	const kills, jobs = 20, 300
	for i := range kills {
		queue := fmt.Sprint("new-", i)
		published := make([]amqp.Publishing, jobs)
		for n, jid := range names(queue+"-published", jobs) {
			published[n] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","args":[],"jid":%q}`, jid), DeliveryMode: amqp.Persistent}
		}
		v.Publish(t, wire.ExchangeDirect, queue, published...)
		schedule(t, v, time.Now(), queue, names(queue+"-scheduled", jobs)...)
		brokertest.Eventually(t, func() bool {
			return v.HasQueue(t, wire.QueuePrefix+queue) && v.QueueLength(t, wire.QueuePrefix+queue) > i
		}, "it fires to %s", queue)
		if i%4 == 3 {
			proxy.Slow(t, 300*time.Millisecond)
			s.stop()
			proxy.Heal(t)
			s = start(t, v, settings)
		} else {
			proxy.Cut(t)
			proxy.Heal(t)
		}
		s.leads(t)
	}
	for i := range kills {
		queue := fmt.Sprint("new-", i)
		work(t, v, queue, nil).gets(t, append(names(queue+"-published", jobs), names(queue+"-scheduled", jobs)...)...)
	}
	require.Zero(t, firesThatFoundNoQueue(t, v), "each queue was there before the first job was fired to it")
}

// An operation creates the queue of the jobs that it fires.
func TestOperationCreatesQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	jids := names("bulk", 100)
	schedule(t, v, time.Now().Add(time.Hour), "fresh", jids...)
	s.reads(t, wire.ScheduledJobs, jids[len(jids)-1])
	s.operates(t, wire.StatusAccepted, "run", wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}})
	op := s.ends(t, "run")
	require.Equal(t, []int64{100, 0}, []int64{op.Done, op.Failed})
	require.Zero(t, firesThatFoundNoQueue(t, v))
	work(t, v, "fresh", nil).gets(t, jids...)
}

// A deleted queue takes its jobs with it. Later fires to that queue come back, and fire once it is
// created again.
func TestUnroutableFireComesBack(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	schedule(t, v, time.Now(), "q", "before")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.q") == 1 }, "it knows the queue")
	_, err := v.Channel(t).QueueDelete("queue.q", false, false, false)
	require.NoError(t, err)
	jids := names("after", 20)
	schedule(t, v, time.Now(), "q", jids...)
	brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.q") }, "it is made again")
	work(t, v, "q", nil).gets(t, jids...)
	require.Positive(t, firesThatFoundNoQueue(t, v))
	brokertest.Eventually(t, func() bool {
		return s.entries.Total(wire.Gated)+s.entries.Total(wire.ScheduledJobs) == 0 && len(s.Status().Held) == 0
	}, "nothing is left")
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}

// jobs.gated does not get a fire that finds no queue, and the broker confirms it. The leader, to
// which the fire comes back too, publishes it to jobs.gated again.
func TestJobThatGatedLostArrives(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	s.isRouted(t)
	first := s.entries.State().RoutedTo
	schedule(t, v, time.Now(), "q", "before")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.q") == 1 }, "it knows the queue")
	brokertest.Eventually(t, func() bool { return s.entries.State().RoutedTo > first }, "no probe needs jobs.gated for the next seconds")
	ch := v.Channel(t)
	_, err := ch.QueueDelete("queue.q", false, false, false)
	require.NoError(t, err)
	require.NoError(t, ch.QueueUnbind(wire.Gated, "", wire.Unrouted, nil))
	fired := journal(t, v)[wire.OpFired]
	schedule(t, v, time.Now(), "q", "lost")
	brokertest.Eventually(t, func() bool { return journal(t, v)[wire.OpFired] > fired }, "it is fired")
	require.NoError(t, ch.QueueBind(wire.Gated, "", wire.Unrouted, false, nil))
	require.Zero(t, firesThatFoundNoQueue(t, v))
	brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.q") }, "its queue is made")
	work(t, v, "q", nil).gets(t, "lost")
	require.Equal(t, 1, firesThatFoundNoQueue(t, v))
}

// Jobs for many queues that cannot be created delay no other queue. They can be listed and deleted.
func TestImpossibleQueuesDelayNoOther(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a", max: 3}).leads(t)
	ensure(t, v, "one", "two")
	brokertest.Eventually(t, func() bool { return s.Status().Leader }, "it leads")
	s.stop() // it counts what is there when it begins
	s = start(t, v, options{identity: "b", max: 3}).leads(t)
	const many = 2000
	schedule(t, v, time.Now(), "three", "third")
	work(t, v, "three", nil).gets(t, "third")
	for i := range many {
		v.Publish(t, wire.ExchangeDirect, fmt.Sprint("four-", i%1500), amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"many-%d"}`, i)})
		if i == 0 {
			brokertest.Eventually(t, func() bool {
				h, held := heldQueue(s, "four-0")
				return held && strings.Contains(h.Reason, "max-queues is 3")
			}, "it is held")
		}
	}
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.Gated) == many }, "all wait")
	begun := time.Now()
	schedule(t, v, time.Now(), "one", "other")
	work(t, v, "one", nil).gets(t, "other")
	require.Less(t, time.Since(begun), 10*time.Second)
	reply := s.ask(t, wire.Command{Command: wire.CommandDelete, Stream: wire.Gated, JID: "many-7"})
	require.Equal(t, wire.StatusDone, reply.Status)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.Gated) == many-1 }, "it is gone")
}

// Messages that an older version left in its queue jobs.unrouted are fired once, also those that
// came while the stream was already bound.
func TestOldUnroutedQueueIsMigrated(t *testing.T) {
	for name, arguments := range map[string]amqp.Table{
		"classic": nil,
		"quorum":  {"x-queue-type": "quorum"}, // where that was the virtual host's default
	} {
		t.Run(name, func(t *testing.T) { takeOverOldQueue(t, arguments) })
	}
}

func takeOverOldQueue(t *testing.T, arguments amqp.Table) {
	t.Parallel()
	v := brokertest.New(t)
	start(t, v, options{identity: "a"}).leads(t).stop()
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.Unrouted, true, false, false, false, arguments)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(wire.Unrouted, "", wire.Unrouted, false, nil))
	publish := func(jids ...string) {
		for _, jid := range jids {
			v.Publish(t, wire.ExchangeDirect, "q", amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","args":[],"jid":%q}`, jid), Priority: 4, DeliveryMode: amqp.Persistent})
		}
	}
	both, old := names("both", 50), names("old", 300)
	publish(both...) // both the stream and the queue are bound now
	require.NoError(t, ch.QueueUnbind(wire.Gated, "", wire.Unrouted, nil))
	publish(old...)
	v.Publish(t, wire.Unrouted, "q", amqp.Publishing{Body: []byte("no job"), DeliveryMode: amqp.Persistent})
	require.Equal(t, 351, v.QueueLength(t, wire.Unrouted))

	s := start(t, v, options{identity: "b"}).leads(t)
	brokertest.Eventually(t, func() bool { return !v.HasQueue(t, wire.Unrouted) }, "it is empty, and deleted")
	w := work(t, v, "q", nil)
	w.gets(t, append(both, old...)...)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.Gated) == 0 }, "nothing waits")
	require.EqualValues(t, 50, s.entries.State().Duplicates)
	require.Len(t, rejects(t, s, wire.Gated), 1)
	publish("after")
	w.gets(t, "after")
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}
