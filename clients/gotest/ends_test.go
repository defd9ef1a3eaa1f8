package gotest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	stateReply = `{"status":200,"paused":[],"claim_below":0}`
	runReply   = `{"status":200,"claim":"run"}`
	dropReply  = `{"status":200,"claim":"drop"}`
)

func slotOf(n int) string { return fmt.Sprintf("g.%d.4.7.j%d", n, n) }

// limited returns a job as a leader delivers it, whose arg is a text.
func limited(class, text, slot string, headers amqp.Table) amqp.Publishing {
	if headers == nil {
		headers = amqp.Table{}
	}
	headers[wire.HeaderSlot] = slot
	return amqp.Publishing{Headers: headers, Body: fmt.Appendf(nil, `{"jid":%q,"class":%q,"args":[%q]}`, text, class, text)}
}

// endsOf returns the slots of each record of jobs.ends.
func endsOf(t *testing.T, v *brokertest.Vhost, w *worker) (records [][]string) {
	t.Helper()
	for _, d := range v.ReadStream(t, wire.JobEnds) {
		r := gjson.ParseBytes(d.Body)
		require.Equal(t, w.Identity(), r.Get("process").String())
		require.Positive(t, r.Get("at").Float())
		slots := []string{r.Get("slot").String()}
		if r.Get("slots").Exists() {
			slots = nil
			for _, s := range r.Get("slots").Array() {
				slots = append(slots, s.String())
			}
			require.Greater(t, len(slots), 1, "%s", d.Body)
		}
		_, all, err := wire.ParseEnd(d.Body)
		require.NoError(t, err)
		require.Len(t, all, len(slots))
		records = append(records, slots)
	}
	return records
}

// Jobs that end while a record is unconfirmed go together. One that ends alone does not wait.
func TestEndsThatComeTogether(t *testing.T) {
	t.Parallel()
	const jobs = 250
	v := vhost(t)
	leads(t, v, stateReply)
	p := brokertest.NewProxy(t, v.AMQPURL())
	w := newTestWorker(t, WorkerConfig{URL: p.URL(), Concurrency: jobs + 1})
	release := make(chan struct{})
	w.Handle("Wait", w.says(func(context.Context, string) error { <-release; return nil }), nil)
	w.Handle("Well", w.says(nil), nil)
	v.Publish(t, wire.ExchangeDirect, "default", limited("Well", "alone", slotOf(jobs), nil))
	w.start(t)
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, wire.JobEnds)) == 1 }, "a job ends alone")
	require.Equal(t, [][]string{{slotOf(jobs)}}, endsOf(t, v, w))

	var want []string
	for n := range jobs {
		want = append(want, slotOf(n))
	}
	for i, slot := range want {
		v.Publish(t, wire.ExchangeDirect, "default", limited("Wait", fmt.Sprint(i), slot, nil))
	}
	brokertest.Eventually(t, func() bool { return len(w.said.all()) == len(want)+1 }, "all jobs run")
	p.Stall(t)
	close(release)
	p.Heal(t)
	var got []string
	var records [][]string
	brokertest.Eventually(t, func() bool {
		records = endsOf(t, v, w)[1:]
		got = slices.Concat(records...)
		return len(got) >= len(want)
	}, "all have ended")
	require.ElementsMatch(t, want, got)
	require.Less(t, len(records), jobs, "some go together")
	w.idle(t, v, "default")
}

// A job whose delivery is lost is not reported: the broker delivers it again. It neither holds up
// nor fails the report of others.
func TestEndOfLostDelivery(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	topology(t, v, "a", "b")
	leads(t, v, stateReply, runReply)
	log := &lines{}
	w := newTestWorker(t, WorkerConfig{URL: v.AMQPURL(), Lanes: []Lane{{Name: "a", Queues: []string{"a"}}, {Name: "b", Queues: []string{"b"}}}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	again := make(chan struct{})
	w.Handle("Well", w.says(func(context.Context, string) error {
		if len(w.said.all()) > 2 {
			<-again
		}
		return nil
	}), nil)
	_, err := v.Channel(t).QueueDelete(wire.JobEnds, false, false, false)
	require.NoError(t, err)
	v.Publish(t, wire.ExchangeDirect, "a", limited("Well", "a", slotOf(1), nil))
	w.start(t)
	brokertest.Eventually(t, func() bool { return strings.Contains(log.String(), "does not take that a job has ended") }, "it is tried")
	v.Publish(t, wire.ExchangeDirect, "b", limited("Well", "b", slotOf(2), nil))
	w.said.has(t, "a", "b")
	// An acknowledgement of an unknown delivery ends the channel of a's lane.
	require.Equal(t, "[ok]", v.Eval(t, fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"queue.a">>)),
		[rabbit_channel:do(element(1, C), {'basic.ack', 99999, false}) || C <- rabbit_amqqueue:consumers(Q)].`, v.Name)))
	brokertest.Eventually(t, func() bool { return len(w.said.all()) == 3 }, "the job of a comes again")
	_, err = v.Channel(t).QueueDeclare(wire.JobEnds, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
	require.NoError(t, err)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.b") == 0 && len(v.ReadStream(t, wire.JobEnds)) > 0 }, "b has ended")
	require.Equal(t, [][]string{{slotOf(2)}}, endsOf(t, v, w))
	close(again)
	brokertest.Eventually(t, func() bool { return len(endsOf(t, v, w)) == 2 }, "a has ended")
	require.Equal(t, [][]string{{slotOf(2)}, {slotOf(1)}}, endsOf(t, v, w))
}
