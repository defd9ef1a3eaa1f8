package demo

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// run runs a demo until its context ends, or the test ends.
func run(t *testing.T, d *Demo) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	d.Log = slog.New(slog.DiscardHandler)
	go func() { ended <- d.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(10 * time.Second):
			t.Error("the demo does not end")
		}
	})
	t.Cleanup(end)
	return end
}

// producing returns a publisher of the demo, whose queues and streams are there.
func producing(t *testing.T) (*brokertest.Vhost, publisher) {
	t.Helper()
	v := brokertest.New(t)
	conn := v.Dial(t)
	require.NoError(t, declare(conn))
	p, err := newPublisher(conn)
	require.NoError(t, err)
	return v, p
}

// records reads a stream's records, which Millrace must all accept.
func records(t *testing.T, v *brokertest.Vhost, stream string, check func(body []byte) error) int {
	t.Helper()
	all := v.ReadStream(t, stream)
	for _, r := range all {
		require.NoError(t, check(r.Body), "%s", r.Body)
	}
	return len(all)
}

func entry(stream string) func(body []byte) error {
	return func(body []byte) error {
		_, err := wire.ParseEntry(stream, 0, body)
		return err
	}
}

func TestDemoWritesValidRecords(t *testing.T) {
	v := brokertest.New(t)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 200}
	end := run(t, d)
	brokertest.Eventually(t, func() bool {
		c := d.Counts()
		return c.Enqueued >= 100 && c.Processed > 0 && c.Failed > 0
	}, "jobs are done, and some fail")
	end()

	require.Positive(t, records(t, v, scheduledJobs, entry(scheduledJobs)))
	require.Positive(t, records(t, v, retries, entry(retries)))
	require.Positive(t, records(t, v, heartbeats, wire.CheckHeartbeat))
	require.Positive(t, records(t, v, jobMetrics, wire.CheckMetrics))
}

func TestDemoWithTopologyOfMillrace(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil))
	_, err := ch.QueueDeclare(wire.QueuePrefix+queueLow, true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	v.DeclareStream(t, retries)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 200}
	run(t, d)
	brokertest.Eventually(t, func() bool { return d.Counts().Processed > 0 }, "it works")
}

func TestDemoDefinesJobsAndLimits(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.LeaderInbox, false, true, false, false, nil)
	require.NoError(t, err)
	inbox, err := ch.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	run(t, &Demo{AMQPURL: v.AMQPURL(), Rate: 1})
	asked := <-inbox
	require.NoError(t, ch.Publish("", asked.ReplyTo, false, false, amqp.Publishing{Body: []byte(`{"status":204}`)}))
	cmd, err := wire.ParseCommand(asked.Body)
	require.NoError(t, err)
	jobs, err := cmd.Definitions.Periodics()
	require.NoError(t, err)
	for _, j := range jobs {
		def, err := wire.ParseWhole(j.Value)
		require.NoError(t, err)
		job, err := wire.ParseJob(def.Job)
		require.NoError(t, err)
		require.Contains(t, known, job.Class)
		require.Contains(t, queues, job.Queue)
	}
	limits, err := cmd.Definitions.NamedLimits()
	require.NoError(t, err)
	require.Len(t, limits, 1)
	def, err := wire.ParseLimit(limits[0].Value)
	require.NoError(t, err)
	require.NoError(t, def.CheckWhole())
	for _, class := range def.Classes {
		require.Contains(t, known, class)
	}
	governs, err := cmd.Definitions.GovernedQueues()
	require.NoError(t, err)
	require.Len(t, governs, 1)
	require.Equal(t, queueExports, governs[0].Name)
}

// Exports are plain jobs for a governed queue, which the demo never binds.
func TestDemoLeavesBindingOfGovernedQueueAlone(t *testing.T) {
	v, p := producing(t)
	export := func() error { return p.next(t.Context(), firstExport) }
	require.NoError(t, export())
	require.Zero(t, v.QueueLength(t, "queue."+queueExports), "it is not bound")
	require.NoError(t, v.Channel(t).QueueBind("queue."+queueExports, queueExports, exchange, false, nil))
	require.NoError(t, export())
	d, ok := v.Get(t, "queue."+queueExports)
	require.True(t, ok)
	job, err := wire.ParseJob(d.Body)
	require.NoError(t, err)
	require.Equal(t, []string{exportOrders, queueExports}, []string{job.Class, job.Queue})
	require.False(t, job.Gated)
}

// Several jobs of a shop come within the time for which one of them has the key.
func TestDemoEnqueuesUniqueJobs(t *testing.T) {
	v, p := producing(t)
	for n := range int64(9 * everyUnique) {
		if rest := n % everyUnique; rest == 9 || rest == everyUnique-1 {
			require.NoError(t, p.next(t.Context(), n))
		}
	}
	perKey := map[string]int{}
	for _, r := range v.ReadStream(t, gatedJobs) {
		entry, err := wire.ParseEntry(gatedJobs, 0, r.Body)
		require.NoError(t, err)
		require.NotNil(t, entry.Job.Unique, "%s", r.Body)
		perKey[entry.Job.Class+" "+gjson.GetBytes(r.Body, "args.0").String()]++
	}
	require.Len(t, perKey, 6, "two classes of three shops")
	for key, n := range perKey {
		require.Equal(t, 3, n, key)
	}
}

// The worker says that a job has ended which holds a slot, and the producer enqueues such jobs.
func TestDemoRunsLimitedJobs(t *testing.T) {
	v := brokertest.New(t)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 200}
	run(t, d)
	var upload []byte
	brokertest.Eventually(t, func() bool {
		for _, r := range v.ReadStream(t, gatedJobs) {
			if gjson.GetBytes(r.Body, "class").String() == importOrders {
				upload = r.Body
			}
		}
		return upload != nil
	}, "a shop uploads its orders")
	gated, err := wire.ParseEntry(gatedJobs, 0, upload)
	require.NoError(t, err)
	require.True(t, gated.Job.Gated)
	require.Regexp(t, `^shop-[123]$`, gated.Job.LimitKey)
	slot := wire.Slot{Stream: wire.Gated, Offset: 0, Epoch: 1, Seq: 1, JIDTag: gated.JID}.String()
	v.Publish(t, exchange, queueDefault, amqp.Publishing{Body: upload, Headers: amqp.Table{"millrace-slot": slot}})
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, jobEnds)) > 0 }, "the end is reported")
	end, _, err := wire.ParseEnd(v.ReadStream(t, jobEnds)[0].Body)
	require.NoError(t, err)
	require.Equal(t, []string{wire.TypeEnded, slot}, []string{end.Type, end.Slot})
}

func TestDemoReconnects(t *testing.T) {
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	d := &Demo{AMQPURL: proxy.URL(), Rate: 100}
	run(t, d)
	brokertest.Eventually(t, func() bool { return d.Counts().Processed > 0 }, "it works")
	proxy.Cut(t)
	proxy.Heal(t)
	before := d.Counts()
	brokertest.Eventually(t, func() bool { return d.Counts().Processed > before.Processed+10 }, "it works again")
}

func TestExhaustedIsBuriedAndInvalidIsRejected(t *testing.T) {
	v := brokertest.New(t)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 1}
	run(t, d)
	brokertest.Eventually(t, func() bool { return d.Counts().Enqueued > 0 }, "the queues are there")
	job := newJob(importUsers, queueLow, 2, json.Number("9007199254740993"))
	job["retry_count"] = 2
	body, err := json.Marshal(job)
	require.NoError(t, err)
	v.Publish(t, exchange, queueLow, amqp.Publishing{Body: body}, amqp.Publishing{Body: []byte("garbage")})

	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, deadJobs)) > 0 }, "it is buried")
	dead, err := wire.ParseEntry(deadJobs, 0, v.ReadStream(t, deadJobs)[0].Body)
	require.NoError(t, err)
	require.Equal(t, "FileNotFound", dead.ErrorClass)
	require.Equal(t, 2, dead.Attempt)
	require.Contains(t, string(dead.Job.Raw), "[9007199254740993]", "its arguments are as they were")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue."+queueLow) == 0 }, "the garbage is off the queue")
}

func TestEveryKindOfJobOccurs(t *testing.T) {
	v, p := producing(t)
	for n := range int64(firstDoomed + 1) {
		require.NoError(t, p.next(t.Context(), n))
	}
	classes := map[string]int{}
	for _, queue := range queues {
		for d, ok := v.Get(t, "queue."+queue); ok; d, ok = v.Get(t, "queue."+queue) {
			job, err := wire.ParseJob(d.Body)
			require.NoError(t, err)
			require.Equal(t, queue, job.Queue)
			classes[job.Class]++
		}
	}
	require.Equal(t, 1, classes[importUsers])
	require.Positive(t, classes[sendEmail])
	require.Positive(t, classes[resizeImage])
	require.Equal(t, 6, classes[chargeCard])
	require.Equal(t, 6, records(t, v, scheduledJobs, entry(scheduledJobs)))
}

func TestBackoffIsShort(t *testing.T) {
	for attempt := range int64(5) {
		got := backoff(attempt)
		require.GreaterOrEqual(t, got, time.Duration(1+attempt)*2*time.Second)
		require.Less(t, got, time.Duration(2+attempt)*2*time.Second)
	}
}

func TestErrorsHaveClasses(t *testing.T) {
	require.Equal(t, "Timeout", errorClass(fail{"Timeout", "x"}))
	require.Equal(t, "*errors.errorString", errorClass(errors.New("x")))
	require.Equal(t, int64(25), number(map[string]any{"retry": true}, "retry", 25))
	require.Equal(t, int64(25), number(map[string]any{"retry": json.Number("1.5")}, "retry", 25))
}

func TestDemoReportsErrors(t *testing.T) {
	never := func(context.Context, *amqp.Connection) error { panic("not reached") }
	v := brokertest.New(t)
	_, err := v.Channel(t).QueueDeclare("queue."+queueLow, true, false, false, false, nil)
	require.NoError(t, err)
	d := &Demo{AMQPURL: v.AMQPURL()}
	require.ErrorContains(t, d.connected(t.Context(), "worker", never), "declare queue."+queueLow)

	w := brokertest.New(t)
	_, err = w.Channel(t).QueueDeclare(heartbeats, true, false, false, false, nil)
	require.NoError(t, err)
	d = &Demo{AMQPURL: w.AMQPURL()}
	require.ErrorContains(t, d.connected(t.Context(), "worker", never), "declare heartbeats")
}

func TestRefusedPublishIsAnError(t *testing.T) {
	v := brokertest.New(t)
	_, err := v.Channel(t).QueueDeclare("full", true, false, false, false, amqp.Table{"x-max-length": 0, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	p, err := newPublisher(v.Dial(t))
	require.NoError(t, err)
	require.ErrorContains(t, p.toStream(t.Context(), "full", map[string]any{}), "refused by the broker")
	require.Error(t, p.toStream(t.Context(), "full", map[string]any{"no JSON": func() {}}))
}

// A job that another program enqueued is left to that program's worker. A job of an unknown class
// does not succeed.
func TestDemoTakesOnlyItsOwnJobs(t *testing.T) {
	for _, queue := range queues {
		require.Contains(t, queue, "demo.")
	}
	v := brokertest.New(t)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 1}
	run(t, d)
	brokertest.Eventually(t, func() bool { return d.Counts().Processed > 0 }, "it works")
	ch := v.Channel(t)
	for _, queue := range []string{"critical", "default", "low"} {
		_, err := ch.QueueDeclare("queue."+queue, true, false, false, false, amqp.Table{"x-max-priority": 10})
		require.NoError(t, err)
		v.Publish(t, "", "queue."+queue, amqp.Publishing{Body: []byte(`{"jid":"theirs","class":"SendEmail","args":[]}`)})
	}
	v.Publish(t, exchange, queueLow, amqp.Publishing{Body: []byte(`{"jid":"greet","class":"Greet","args":[],"queue":"demo.low","retry":0}`)})
	brokertest.Eventually(t, func() bool { return len(v.ReadStream(t, deadJobs)) > 0 }, "a job of an unknown class dies")
	dead, err := wire.ParseEntry(deadJobs, 0, v.ReadStream(t, deadJobs)[0].Body)
	require.NoError(t, err)
	require.Equal(t, "greet", dead.JID)
	require.Equal(t, "UnknownClass", dead.ErrorClass)
	for _, queue := range []string{"critical", "default", "low"} {
		require.Equal(t, 1, v.QueueLength(t, "queue."+queue), queue)
	}
}

func TestDemoSendsLastHeartbeat(t *testing.T) {
	v := brokertest.New(t)
	d := &Demo{AMQPURL: v.AMQPURL(), Rate: 20}
	end := run(t, d)
	brokertest.Eventually(t, func() bool { return d.Counts().Processed > 0 }, "it works")
	end()
	all := v.ReadStream(t, heartbeats)
	var last struct {
		State string
		Busy  int64
	}
	require.NoError(t, json.Unmarshal(all[len(all)-1].Body, &last))
	require.Equal(t, "stopping", last.State)
	require.Zero(t, last.Busy)
}
