package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

// Clients delete what they declare: a queue, and jobs.direct with all its bindings. Without an
// alternate exchange, a job that is due meanwhile would be confirmed by the journal alone.
func TestDueJobsArriveDespiteDeletedTopology(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "gone", "kept")
	kept := work(t, v, "kept", nil)
	ch := v.Channel(t)
	direct := func() {
		require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, amqp.ExchangeDirect, true, false, false, false, nil))
	}
	for _, c := range []struct {
		what string
		do   func()
	}{
		{"queue", func() {}},
		{"jobs.direct", func() {
			require.NoError(t, ch.ExchangeDelete(wire.ExchangeDirect, false, false))
		}},
		{"jobs.direct-made-again", func() {
			require.NoError(t, ch.ExchangeDelete(wire.ExchangeDirect, false, false))
			direct()
		}},
		{"operators-policy", func() { // takes the alternate exchange from jobs.direct
			direct()
			policy(t, v, "own", `^jobs\.direct$`, "exchanges", map[string]any{"alternate-exchange": "amq.fanout"})
		}},
	} {
		_, err := ch.QueueDelete("queue.gone", false, false, false)
		require.NoError(t, err)
		c.do()
		schedule(t, v, time.Now(), "gone", names("gone-"+c.what, 3)...)
		schedule(t, v, time.Now(), "kept", names("kept-"+c.what, 3)...)
		brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 0 }, "all are fired: %s", c.what)
		work(t, v, "gone", nil).gets(t, names("gone-"+c.what, 3)...)
		kept.gets(t, names("kept-"+c.what, 3)...)
	}
	require.Equal(t, int64(1), s.Status().Counters.Epochs, "no deletion ends an epoch")
}

// A client has an exclusive queue with a name that RabbitMQ 4 cannot send back, and publishes to
// it. A check of that queue must not keep Millrace from leading.
func TestQueueThatMustNotBeChecked(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	w := work(t, v, "q", nil)
	name := strings.Repeat("é", 10)
	if v.Features(t).ASCIINamesOnly {
		name = strings.Repeat("e", 10)
	}
	_, err := v.Channel(t).QueueDeclare(wire.QueuePrefix+name, false, false, true, false, nil)
	require.NoError(t, err)
	v.Publish(t, wire.ExchangeDirect, name, amqp.Publishing{Body: []byte(job("Mail", name))})
	v.Publish(t, wire.ExchangeDirect, strings.Repeat("é", 100), amqp.Publishing{Body: []byte(job("Mail", "x"))})
	brokertest.Eventually(t, func() bool {
		return slices.ContainsFunc(s.Status().Held, func(h scheduler.HeldQueue) bool { return h.Queue == name })
	}, "its job is held")
	schedule(t, v, time.Now(), "q", "j")
	w.gets(t, "j")
	s.leads(t)
	require.LessOrEqual(t, s.Status().Counters.Epochs, int64(1+2))
}

// Jobs that clients publish to jobs.direct are caught too, where Millrace's policy applies. Later
// ones are routed to the queue.
func TestJobsForDeletedQueueAreCaught(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDelete(wire.ExchangeDirect, false, false))
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, amqp.ExchangeDirect, true, false, false, false, nil))
	enqueue := func(jid string) {
		v.Publish(t, wire.ExchangeDirect, "q", amqp.Publishing{Body: []byte(`{"class":"C","args":[],"jid":"` + jid + `"}`)})
	}
	caught := func() (n int) {
		for _, d := range v.ReadStream(t, wire.Gated) {
			if gjson.GetBytes(d.Body, "class").String() == "C" {
				n++
			}
		}
		return n
	}
	w := work(t, v, "q", nil)
	brokertest.Eventually(t, func() bool { // a leader sets its policies while it fires already
		enqueue("probe")
		return caught() > 0
	}, "a job for a queue that is bound no more is caught")
	brokertest.Eventually(t, func() bool { return w.times("probe") > 0 && s.entries.Total(wire.Gated) == 0 }, "it comes")
	before := caught()
	enqueue("j")
	w.gets(t, "j")
	require.Equal(t, before, caught(), "the queue is bound again")
}

// A client deletes jobs.bury, which no fire needs. The next leader declares it again, and leads.
func TestDeletedBuryExchangeIsDeclaredAgain(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	start(t, v, options{identity: "a"}).leads(t).stop()
	require.NoError(t, v.Channel(t).ExchangeDelete(wire.ExchangeBury, false, false))
	start(t, v, options{identity: "b"}).leads(t)
	schedule(t, v, time.Now(), "q", "j")
	w.gets(t, "j")
	require.NoError(t, v.Channel(t).ExchangeDeclarePassive(wire.ExchangeBury, amqp.ExchangeFanout, true, false, false, false, nil))
}
