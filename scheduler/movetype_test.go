package scheduler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// moved follows a move until it has ended, also across a failover.
func moved(t *testing.T, cmd wire.Command, sidecars ...*sidecar) wire.Reply {
	t.Helper()
	cmd.Command = wire.CommandMoveType
	var reply wire.Reply
	brokertest.EventuallyWithin(t, 3*time.Minute, func() bool {
		for _, s := range sidecars {
			if s.asker.Led() {
				reply = s.ask(t, cmd)
				break
			}
		}
		return reply.Status == wire.StatusOK || reply.Status == wire.StatusConflict || reply.Status == wire.StatusNotFound
	}, "the move ends: %v", reply)
	return reply
}

func needsQuorumPriorities(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	if !v.Features(t).QuorumPriorities {
		t.Skip("quorum queues of this broker have no strict priorities: set MILLRACE_TEST_RABBITMQ to a RabbitMQ 4.3")
	}
}

func typeOf(t *testing.T, v *brokertest.Vhost, queue string) string {
	t.Helper()
	var q struct {
		Type string `json:"type"`
	}
	if err := v.Try(t.Context(), http.MethodGet, "/api/queues/"+v.Name+"/queue."+queue, nil, &q); err != nil {
		return "" // it is missing
	}
	return cmp.Or(q.Type, "classic") // LavinMQ has no other type here, and does not name it
}

// plainWorker consumes a queue like a program that does not know Millrace. It does not listen to
// jobs.control, and begins again when the broker ends its consumer, channel or connection. Each job
// takes it a moment.
func plainWorker(t *testing.T, v *brokertest.Vhost, queue string) *worker {
	t.Helper()
	w := &worker{seen: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	done.Go(func() {
		for ctx.Err() == nil {
			if err := w.connect(ctx, v.AMQPURL(), queue); err != nil {
				t.Log("a plain worker connects again:", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return w
}

func (w *worker) connect(ctx context.Context, url, queue string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	for ctx.Err() == nil {
		ch, err := conn.Channel()
		if err != nil {
			return errors.Join(err, <-closed)
		}
		w.consume(ch, queue)
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

func (w *worker) consume(ch *amqp.Channel, queue string) {
	defer ch.Close()
	if ch.Qos(10, 0, false) != nil {
		return
	}
	jobs, err := ch.Consume(wire.QueuePrefix+queue, "", false, false, false, false, nil)
	if err != nil {
		return
	}
	for d := range jobs {
		time.Sleep(time.Millisecond)
		w.mu.Lock()
		w.seen[d.MessageId]++
		w.mu.Unlock()
		_ = d.Ack(false)
	}
}

// producer publishes jobs to jobs.direct until it is stopped, and remembers which were confirmed.
type producer struct {
	stop func() []string
}

func produce(t *testing.T, v *brokertest.Vhost, queue, prefix string) *producer {
	t.Helper()
	ch := v.Channel(t)
	require.NoError(t, ch.Confirm(false))
	var jids []string
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			jid := fmt.Sprint(prefix, "-", i)
			c, err := ch.PublishWithDeferredConfirm(wire.ExchangeDirect, queue, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent,
				MessageId: jid, Priority: uint8(i % 10), Body: fmt.Appendf(nil, `{"class":"C","args":[%d],"jid":%q}`, i, jid)})
			if err != nil {
				t.Errorf("a producer cannot publish: %v", err)
				return
			}
			if !c.Wait() {
				t.Errorf("the broker refused %s", jid)
				return
			}
			jids = append(jids, jid)
			time.Sleep(5 * time.Millisecond)
		}
	})
	return &producer{func() []string {
		cancel()
		done.Wait()
		return jids
	}}
}

// counts returns how many of some jobs never came, and how many came more than once.
func (w *worker) counts(jids []string) (lost, doubled int) {
	for _, jid := range jids {
		switch n := w.times(jid); {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	return lost, doubled
}

// hasCome waits until all jobs have come, as long as any comes.
func (w *worker) hasCome(t *testing.T, v *brokertest.Vhost, s *sidecar, jids []string) {
	t.Helper()
	for before, since := 0, time.Now(); !w.hasAll(jids); time.Sleep(100 * time.Millisecond) {
		if n := w.distinct(); n > before {
			before, since = n, time.Now()
		}
		if time.Since(since) < 30*time.Second {
			continue
		}
		missing := slices.DeleteFunc(slices.Clone(jids), func(jid string) bool { return w.times(jid) > 0 })
		where := map[string][]string{}
		for _, stream := range []string{wire.Gated, wire.Journal, wire.ScheduledJobs} {
			for _, d := range v.ReadStream(t, stream) {
				if strings.Contains(string(d.Body), fmt.Sprintf("%q", missing[0])) {
					where[stream] = append(where[stream], fmt.Sprint(brokertest.Offset(d), d.Headers))
				}
			}
		}
		require.Fail(t, "no more jobs come", "%d are missing, such as %v; it stands in %v; %d wait in jobs.gated, %d in the queue, held %v",
			len(missing), missing[:min(5, len(missing))], where, s.entries.Total(wire.Gated), v.QueueLength(t, "queue.q"), s.Status().Held)
		return
	}
}

// A queue is moved to quorum and back while producers publish and a plain worker consumes. Each job
// comes once.
func TestMoveOfQueueInUse(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	needsQuorumPriorities(t, v)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	waiting := names("waiting", 3000)
	publishAll(t, v, "q", waiting)
	w := plainWorker(t, v, "q")
	p := produce(t, v, "q", "direct")
	schedule(t, v, time.Now().Add(3*time.Second), "q", names("early", 100)...)
	schedule(t, v, time.Now().Add(12*time.Second), "q", names("late", 100)...)

	plan := moved(t, wire.Command{ID: "plan", Queue: "q", Type: wire.QueueQuorum, DryRun: true}, s)
	require.Equal(t, wire.MovePlanned, plan.Move.State)
	require.Equal(t, []string{"classic", "quorum"}, []string{plan.Move.From, plan.Move.To})
	require.Positive(t, plan.Move.Ready)
	require.Equal(t, int64(1), plan.Move.Consumers)
	require.Equal(t, map[string]any{"x-queue-type": "quorum"}, plan.Move.Arguments)
	require.Equal(t, "classic", typeOf(t, v, "q"), "it was only checked")

	r := moved(t, wire.Command{ID: "there", Queue: "q", Type: wire.QueueQuorum}, s)
	require.Equal(t, wire.StatusOK, r.Status, r.Reason)
	require.Equal(t, wire.MoveDone, r.Move.State)
	require.Equal(t, "quorum", typeOf(t, v, "q"))
	require.Empty(t, s.entries.Paused())
	r = moved(t, wire.Command{ID: "again", Queue: "q", Type: wire.QueueQuorum}, s)
	require.Equal(t, wire.StatusOK, r.Status, "it is one")
	r = moved(t, wire.Command{ID: "back", Queue: "q", Type: wire.QueueClassic}, s)
	require.Equal(t, wire.StatusOK, r.Status, r.Reason)
	require.Equal(t, "classic", typeOf(t, v, "q"))

	direct := p.stop()
	all := append(append(append(waiting, direct...), names("early", 100)...), names("late", 100)...)
	w.hasCome(t, v, s, all)
	lost, doubled := w.counts(all)
	t.Log(len(all), "jobs,", len(direct), "of them published meanwhile:", lost, "lost,", doubled, "doubled")
	require.Zero(t, doubled)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.Gated) == 0 && len(s.Status().Held) == 0 }, "nothing is left")
	require.Equal(t, 2, journal(t, v)[wire.TypeNoted])
}

func publishAll(t *testing.T, v *brokertest.Vhost, queue string, jids []string) {
	t.Helper()
	messages := make([]amqp.Publishing, len(jids))
	for i, jid := range jids {
		messages[i] = amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: jid, Priority: uint8(i % 10),
			Body: fmt.Appendf(nil, `{"class":"C","args":[%d],"jid":%q}`, i, jid)}
	}
	v.Publish(t, wire.ExchangeDirect, queue, messages...)
}

// The leader's connection is cut at random moments of a move, again and again, every second time
// while it replaces the queue. No job is lost. The next leader binds the queue and has workers
// resume it. The command, when repeated, ends with the new type.
func TestLeaderCrashDuringMove(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	needsQuorumPriorities(t, v)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	a := start(t, v, options{identity: "a", amqpURL: proxy.URL()}).leads(t)
	ensure(t, v, "q")
	jids := names("waiting", 5000)
	publishAll(t, v, "q", jids)
	w := plainWorker(t, v, "q")
	p := produce(t, v, "q", "direct")
	other := map[string]string{"classic": wire.QueueQuorum, "quorum": wire.QueueClassic}
	const kills = 4
	for i := range kills {
		b := start(t, v, options{identity: "b"})
		brokertest.Eventually(t, func() bool { return b.asker.Led() }, "it hears the leader")
		cmd := wire.Command{Command: wire.CommandMoveType, ID: fmt.Sprint("move-", i), Queue: "q", Type: other[typeOf(t, v, "q")]}
		var r wire.Reply
		brokertest.Eventually(t, func() bool {
			r = b.ask(t, cmd)
			return r.Status == wire.StatusAccepted
		}, "it begins: %v", r)
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond)
		} else {
			proxy.Slow(t, 100*time.Millisecond)
			brokertest.EventuallyWithin(t, time.Minute, func() bool { return b.ask(t, cmd).Move.Step == "replacing the queue" }, "it is about to")
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		}
		proxy.Cut(t)
		before := typeOf(t, v, "q")
		b.leads(t)
		brokertest.Eventually(t, func() bool { return len(b.entries.Paused()) == 0 && typeOf(t, v, "q") != "" }, "the next leader undoes it")
		more := names(fmt.Sprint("after-", i), 10)
		publishAll(t, v, "q", more)
		brokertest.Eventually(t, func() bool { return w.hasAll(more) }, "jobs arrive")
		jids = append(jids, more...)
		t.Logf("kill %d: to %s, then it was %q, and is %s", i, cmd.Type, before, typeOf(t, v, "q"))
		proxy.Heal(t)
		b.stop()
		a.leads(t)
	}
	if typeOf(t, v, "q") == "classic" {
		r := moved(t, wire.Command{ID: "last", Queue: "q", Type: wire.QueueQuorum}, a)
		require.Equal(t, wire.StatusOK, r.Status, r.Reason)
	}
	require.Equal(t, "quorum", typeOf(t, v, "q"))
	jids = append(jids, p.stop()...)
	w.hasCome(t, v, a, jids)
	lost, doubled := w.counts(jids)
	t.Log(len(jids), "jobs:", lost, "lost,", doubled, "doubled")
	require.Empty(t, a.entries.Paused())
	require.LessOrEqual(t, doubled, kills*(256+64), "messages of the relay, and fired jobs")
}

// An unacknowledged job prevents the move: the queue is bound again, and the answer names the
// reason.
func TestUnacknowledgedJobPreventsMove(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	needsQuorumPriorities(t, v)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	publishAll(t, v, "q", []string{"slow"})
	ch := v.Channel(t)
	jobs, err := ch.Consume("queue.q", "", false, false, false, false, nil)
	require.NoError(t, err)
	slow := <-jobs
	r := moved(t, wire.Command{ID: "m", Queue: "q", Type: wire.QueueQuorum, Within: 20}, s)
	require.Equal(t, wire.StatusConflict, r.Status)
	require.Contains(t, r.Reason, "1 job still unacknowledged at workers")
	require.Equal(t, "classic", typeOf(t, v, "q"))
	require.Empty(t, s.entries.Paused())
	publishAll(t, v, "q", []string{"direct"})
	schedule(t, v, time.Now(), "q", "scheduled")
	seen := map[string]bool{}
	for range 2 {
		select {
		case d := <-jobs:
			seen[d.MessageId] = true
			require.NoError(t, d.Ack(false))
		case <-time.After(30 * time.Second):
			require.FailNow(t, "no job comes", "%v", seen)
		}
	}
	require.Equal(t, map[string]bool{"direct": true, "scheduled": true}, seen)
	require.NoError(t, slow.Ack(false))
}

// A worker declares the queue with the old type before the leader declares it. The answer says so,
// the queue is bound, and all jobs come.
func TestWorkerRedeclaresOldTypeDuringMove(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	needsQuorumPriorities(t, v)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	s := start(t, v, options{identity: "a", amqpURL: proxy.URL()}).leads(t)
	ensure(t, v, "q")
	publishAll(t, v, "q", names("before", 50))
	proxy.Slow(t, 50*time.Millisecond) // the worker is quicker
	ctx, stop := context.WithCancel(t.Context())
	var declaring sync.WaitGroup
	conn := v.Dial(t)
	declaring.Go(func() {
		for ctx.Err() == nil {
			ch, err := conn.Channel()
			for err == nil && ctx.Err() == nil {
				_, err = ch.QueueDeclare("queue.q", true, false, false, false, amqp.Table{"x-max-priority": int32(10)})
				time.Sleep(5 * time.Millisecond)
			}
		}
	})
	r := moved(t, wire.Command{ID: "m", Queue: "q", Type: wire.QueueQuorum}, s)
	stop()
	declaring.Wait()
	require.Equal(t, wire.StatusConflict, r.Status, "%v", r.Move)
	require.Contains(t, r.Reason, "a client declared it again as classic")
	require.Equal(t, "classic", typeOf(t, v, "q"))
	publishAll(t, v, "q", names("after", 50))
	plainWorker(t, v, "q").gets(t, append(names("before", 50), names("after", 50)...)...)
}

// A move that is not possible is refused, and the queue stays as it is.
func TestRefusedMoves(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	publishAll(t, v, "q", []string{"one"})
	refused := func(queue, to string) string {
		for _, dry := range []bool{true, false} {
			r := moved(t, wire.Command{ID: "m", Queue: queue, Type: to, DryRun: dry}, s)
			require.Contains(t, []int{wire.StatusConflict, wire.StatusNotFound}, r.Status, "%v", r)
			if !dry {
				return r.Reason
			}
		}
		return ""
	}
	if f := v.Features(t); !f.QuorumPriorities {
		require.Contains(t, refused("q", wire.QueueQuorum), f.Product+" "+f.Version+" has no quorum queues with strict priorities")
		require.Equal(t, "classic", typeOf(t, v, "q"))
	}
	require.Contains(t, refused("missing", wire.QueueClassic), "no such queue")
	ch := v.Channel(t)
	require.NoError(t, ch.QueueBind("queue.q", "else", "amq.topic", false, nil))
	require.Contains(t, refused("q", wire.QueueClassic), "amq.topic")
	require.NoError(t, ch.QueueUnbind("queue.q", "else", "amq.topic", nil))
	require.Equal(t, wire.StatusOK, moved(t, wire.Command{ID: "is", Queue: "q", Type: wire.QueueClassic}, s).Status)
	require.Equal(t, wire.StatusBad, s.ask(t, wire.Command{Command: wire.CommandMoveType, ID: "x", Queue: "q", Type: "stream"}).Status)
	plainWorker(t, v, "q").gets(t, "one")
	require.Zero(t, journal(t, v)[wire.TypeNoted])
}

// A pause by an operator outlasts a move. A quorum queue that was created on any version can become
// a classic one.
func TestPauseSurvivesMove(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	if !v.Features(t).QuorumQueues {
		t.Skip("this broker has no quorum queues")
	}
	s := start(t, v, options{identity: "a"}).leads(t)
	_, err := v.Channel(t).QueueDeclare("queue.q", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	require.NoError(t, err)
	ensure(t, v, "q")
	publishAll(t, v, "q", names("job", 100))
	require.Equal(t, wire.StatusDone, s.ask(t, wire.Command{Command: wire.CommandPause, Queue: "q", Reason: "a look"}).Status)
	r := moved(t, wire.Command{ID: "m", Queue: "q", Type: wire.QueueClassic}, s)
	require.Equal(t, wire.StatusOK, r.Status, r.Reason)
	require.Equal(t, int64(100), r.Move.Moved)
	require.Equal(t, "classic", typeOf(t, v, "q"))
	p := s.entries.Paused()["q"]
	require.Equal(t, "a look", p.Reason)
	require.Nil(t, p.Move)
	plainWorker(t, v, "q").gets(t, names("job", 100)...)
}
