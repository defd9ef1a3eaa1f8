package scheduler

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// working has one part of a leadership work until the test ends.
func working(t *testing.T, part func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

// prepared is a scheduler beside a broker that has all it needs.
func prepared(t *testing.T) (*Scheduler, *broker.Conn, *brokertest.Vhost) {
	t.Helper()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.prepare(t.Context(), conn))
	require.NoError(t, conn.MakeWay(t.Context()))
	return s, conn, v
}

func (s *Scheduler) refusal(queue string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.status.Unroutable {
		if h.Queue == queue {
			return h.Reason
		}
	}
	return ""
}

// Jobs for a queue that cannot be made leave room for others, however many there are, and none of them is lost.
func TestManyJobsForAQueueThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	owner := v.Dial(t)
	ch, err := owner.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("queue.theirs", false, false, true, false, nil)
	require.NoError(t, err)
	many := make([]amqp.Publishing, relayWindow+20)
	for i := range many {
		many[i] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"theirs-%d"}`, i), DeliveryMode: amqp.Persistent}
	}
	v.Publish(t, wire.Unrouted, "theirs", many...)
	v.Publish(t, wire.Unrouted, "fine", amqp.Publishing{Body: []byte(`{"class":"C","jid":"fine"}`)})
	working(t, func(ctx context.Context) error { return s.reroute(ctx, conn, func() {}) })
	brokertest.Eventually(t, func() bool { return s.refusal("theirs") != "" }, "theirs are held")
	brokertest.Eventually(t, func() bool {
		there, err := conn.QueueExists(t.Context(), "queue.fine")
		require.NoError(t, err)
		return there && v.QueueLength(t, "queue.fine") == 1
	}, "the other one comes through, behind more than are taken at once")
	require.NoError(t, owner.Close())
	brokertest.Eventually(t, func() bool {
		there, err := conn.QueueExists(t.Context(), "queue.theirs")
		return err == nil && there && v.QueueLength(t, "queue.theirs") == len(many)
	}, "all of them are there")
	seen := map[string]bool{}
	for range many {
		d, ok := v.Get(t, "queue.theirs")
		require.True(t, ok)
		seen[gjson.GetBytes(d.Body, "jid").String()] = true
	}
	require.Len(t, seen, len(many))
	brokertest.Eventually(t, func() bool { return s.refusal("theirs") == "" }, "nothing is held")
}

// A queue that is full refuses what is rerouted, too: it waits, and comes when there is room.
func TestReroutedToAFullQueue(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	_, err := v.Channel(t).QueueDeclare("queue.full", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	v.Publish(t, "", "queue.full", amqp.Publishing{Body: []byte(`{"class":"C","jid":"first"}`)})
	v.Publish(t, wire.Unrouted, "full", amqp.Publishing{Body: []byte(`{"class":"C","jid":"second"}`)})
	working(t, func(ctx context.Context) error { return s.reroute(ctx, conn, func() {}) })
	brokertest.Eventually(t, func() bool { return s.refusal("full") != "" }, "it is held")
	require.Contains(t, s.refusal("full"), "full")
	for _, jid := range []string{"first", "second"} {
		var d amqp.Delivery
		brokertest.Eventually(t, func() (ok bool) {
			d, ok = v.Get(t, "queue.full")
			return ok
		}, "%s comes", jid)
		require.Equal(t, jid, gjson.GetBytes(d.Body, "jid").String())
	}
	brokertest.Eventually(t, func() bool { return s.refusal("full") == "" && v.QueueLength(t, wire.Unrouted) == 0 }, "nothing waits")
}

// A leader that ends waits for the confirms of what it has published, and acknowledges it: the next would publish it again.
func TestRelaysEndWithNothingInFlight(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	const n = 100
	jobs := make([]amqp.Publishing, n)
	for i := range jobs {
		jobs[i] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"j-%d"}`, i), DeliveryMode: amqp.Persistent}
	}
	for queue, take := range map[string]func(*relay, wire.Delivery) error{
		wire.Unrouted: func(r *relay, d wire.Delivery) error {
			return r.pass(d, wire.Message{Key: wire.ScheduledJobs, Body: d.Body})
		},
		wire.DeadLetters: s.buryOne,
	} {
		v.Publish(t, "", queue, jobs...)
		relay, err := openRelay(t.Context(), conn, queue, badBodies{})
		require.NoError(t, err)
		for range n {
			require.NoError(t, take(relay, <-relay.from.Deliveries()))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		require.NoError(t, relay.run(ended, nil, nil, nil))
		require.Empty(t, relay.flight)
		relay.close()
		require.Zero(t, v.QueueLength(t, queue), "all were acknowledged")
	}
	for _, stream := range []string{wire.ScheduledJobs, wire.DeadJobs} {
		require.Len(t, v.ReadStream(t, stream), n)
	}
}

// Somebody deletes jobs.unrouted while jobs wait in it for a queue that cannot be made: RabbitMQ calls it empty when a leader has all of them
// at hand. They are entered as due, for the queue that they were sent to, and what is no job is listed.
func TestWhatWaitsOutlivesItsQueue(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	_, err := v.Channel(t).QueueDeclare("queue.theirs", false, false, true, false, nil)
	require.NoError(t, err)
	working(t, func(ctx context.Context) error { return s.reroute(ctx, conn, func() {}) })
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	v.Publish(t, wire.Unrouted, "theirs",
		amqp.Publishing{Body: []byte(`{"class":"C","jid":"a","args":[1.0]}`), Priority: 3, Headers: amqp.Table{wire.HeaderTraceparent: trace}},
		amqp.Publishing{Body: []byte(`{"class":"C","queue":"theirs"}`), MessageId: "b"},
		amqp.Publishing{Body: []byte(`{"class":"C","jid":"c","queue":"other"}`)},
		amqp.Publishing{Body: []byte("no job")})
	brokertest.Eventually(t, func() bool { return s.refusal("theirs") != "" && v.QueueLength(t, wire.Unrouted) == 0 }, "they are held")
	_, err = v.Channel(t).QueueDelete(wire.Unrouted, false, false, false)
	require.NoError(t, err)
	var records []amqp.Delivery
	brokertest.Eventually(t, func() bool {
		records = v.ReadStream(t, wire.ScheduledJobs)
		return len(records) == 3 && len(v.ReadStream(t, wire.Journal)) == 1
	}, "none is lost")
	var entries []wire.Entry
	for i, r := range records {
		e, err := wire.ParseEntry(wire.ScheduledJobs, int64(i), r.Body)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), e.At, time.Minute)
		require.Equal(t, e.JID == "a", r.Headers[wire.HeaderTraceparent] == trace)
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b wire.Entry) int { return a.At.Compare(b.At) })
	for i, job := range []string{
		`{"class":"C","jid":"a","args":[1.0],"queue":"theirs","priority":3}`, `{"class":"C","queue":"theirs","jid":"b"}`, `{"class":"C","jid":"c","queue":"theirs"}`,
	} {
		require.Equal(t, job, string(entries[i].Job.Raw), "they fall due in their order")
	}
	require.Equal(t, "no job", journaled(t, v.ReadStream(t, wire.Journal)[0].Body))
}

// journaled is the body that a journal record is about.
func journaled(t *testing.T, record []byte) string {
	t.Helper()
	j, err := wire.ParseJournal(record)
	require.NoError(t, err)
	return string(j.Body)
}

// The same with jobs.deadletters. What is to take the dead jobs may be gone too, somebody may have made the queue again, and what ends the
// channel is listed in the end, so that the others come through.
func TestDeadLettersOutliveTheirQueue(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	channel := v.Channel(t)
	killer := fmt.Sprintf(`{"class":"C","jid":"k","args":[%q]}`, strings.Repeat("k", 100))
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)}, amqp.Publishing{Body: []byte(`{"class":"C","jid":"b"}`)},
		amqp.Publishing{Body: []byte(killer)}, amqp.Publishing{Body: []byte(`{"class":"C","jid":"c"}`)})
	relay, err := openRelay(t.Context(), conn, wire.DeadLetters, badBodies{})
	require.NoError(t, err)
	defer relay.close()
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, wire.DeadLetters) == 0 }, "they are at hand")
	become := func(d wire.Delivery) (m wire.Message, some bool) {
		if m = s.buried(d); m.MessageID == "k" {
			m.Exchange = "no such exchange"
		}
		return m, true
	}
	require.NoError(t, relay.rescue(t.Context(), s, conn, become))
	require.Empty(t, v.ReadStream(t, wire.DeadJobs), "nothing is amiss")

	d := <-relay.from.Deliveries()
	relay.hand[d.Tag] = d
	for _, queue := range []string{wire.DeadJobs, wire.DeadLetters} {
		_, err = channel.QueueDelete(queue, false, false, false)
		require.NoError(t, err)
	}
	<-relay.from.Done()
	_, err = channel.QueueDeclare(wire.DeadLetters, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, relay.rescue(t.Context(), s, conn, become))
	var kept []string
	for _, r := range v.ReadStream(t, wire.DeadJobs) {
		kept = append(kept, r.MessageId)
	}
	require.ElementsMatch(t, []string{"a", "b", "c"}, kept)
	require.Equal(t, killer, journaled(t, v.ReadStream(t, wire.Journal)[0].Body))
}

// What a relay published and no queue took is not taken for done, though the broker confirms it: it is at hand until it is safe.
func TestWhatNoQueueTookIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)})
	_, err := v.Channel(t).QueueDelete(wire.DeadJobs, false, false, false)
	require.NoError(t, err)
	working(t, func(ctx context.Context) error { return s.bury(ctx, conn) })
	brokertest.Eventually(t, func() bool {
		_, err := v.Channel(t).QueueDeclarePassive(wire.DeadJobs, false, false, false, false, nil)
		return err == nil && len(v.ReadStream(t, wire.DeadJobs)) == 1
	}, "it is buried once there is a stream again")
	require.Zero(t, v.QueueLength(t, wire.DeadLetters))
}

// A probe of the leader's own that stood in jobs.unrouted then is nothing that anybody has to hear of.
func TestProbesAreNotRescued(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	pub, err := conn.Publisher(t.Context())
	require.NoError(t, err)
	require.NoError(t, pub.Send(t.Context(), wire.UnroutedProbe()))
	v.Publish(t, wire.Unrouted, "q", amqp.Publishing{Body: []byte("no job")})
	relay, err := openRelay(t.Context(), conn, wire.Unrouted, badBodies{})
	require.NoError(t, err)
	defer relay.close()
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, wire.Unrouted) == 0 }, "they are at hand")
	_, err = v.Channel(t).QueueDelete(wire.Unrouted, false, false, false)
	require.NoError(t, err)
	<-relay.from.Done()
	require.NoError(t, relay.rescue(t.Context(), s, conn, (&rerouter{s: s, conn: conn}).rescued))
	listed := v.ReadStream(t, wire.Journal)
	require.Len(t, listed, 1)
	require.Equal(t, "no job", journaled(t, listed[0].Body))
}

// No more queues are made than were allowed; those that are there take jobs all the same.
func TestNoMoreQueuesThanAllowed(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	s.cfg.MaxQueues = 2
	working(t, func(ctx context.Context) error { return s.reroute(ctx, conn, func() {}) })
	for i := range 3 {
		v.Publish(t, wire.Unrouted, fmt.Sprint("q-", i), amqp.Publishing{Body: []byte(`{"class":"C"}`)})
	}
	brokertest.Eventually(t, func() bool { return s.refusal("q-2") != "" }, "the third is not made")
	require.Contains(t, s.refusal("q-2"), "max-queues is 2")
	there, err := conn.QueueExists(t.Context(), "queue.q-2")
	require.NoError(t, err)
	require.False(t, there)
	v.Publish(t, wire.Unrouted, "q-0", amqp.Publishing{Body: []byte(`{"class":"C"}`)})
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.q-0") == 2 }, "those that are there take jobs")
}

// What goes with a rerouted job is what its body and its sender's trace say.
func TestReroutedJobsKeepTheirTrace(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	d := wire.Delivery{Key: "q", Priority: 2, Body: []byte(`{"class":"C","jid":"j","priority":7}`), Headers: map[string]any{
		wire.HeaderTraceparent: trace, "theirs": "x", wire.HeaderOp: wire.OpFired}}
	m := reroute(d)
	require.Equal(t, map[string]any{wire.HeaderTraceparent: trace}, m.Headers)
	require.Equal(t, []any{"q", "j", "C", uint8(7)}, []any{m.Key, m.MessageID, m.Type, m.Priority})
	d.Body, d.Headers = []byte("no job"), nil
	m = reroute(d)
	require.Empty(t, m.Headers)
	require.Equal(t, []any{"q", "", uint8(2)}, []any{m.Key, m.MessageID, m.Priority})
}

// A body that killed the channel each time that it was published is published no more: it is listed, with the reason, and its place in
// the queue is free.
func TestBodiesThatKillAreListed(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	body := []byte(`{"class":"C","jid":"bad"}`)
	for queue, take := range map[string]func(context.Context, *relay, wire.Delivery) error{
		wire.Unrouted: func(ctx context.Context, r *relay, d wire.Delivery) error {
			return (&rerouter{s: s, conn: conn, relay: r, refused: map[string]*refusal{}, ensured: map[string]time.Time{}}).take(ctx, d)
		},
		wire.DeadLetters: func(_ context.Context, r *relay, d wire.Delivery) error { return s.buryOne(r, d) },
	} {
		bad := badBodies{sha256.Sum256(body): maxKills}
		relay, err := openRelay(t.Context(), conn, queue, bad)
		require.NoError(t, err)
		v.Publish(t, "", queue, amqp.Publishing{Body: body})
		d := <-relay.from.Deliveries()
		d.Key = "q"
		require.NoError(t, take(t.Context(), relay, d))
		require.NoError(t, relay.confirmed([]broker.Confirm{{Tag: 1 << 40}}), "a confirm of nothing")
		require.Len(t, relay.flight, 1)
		require.NoError(t, relay.confirmed(<-relay.to.Confirms()))
		require.Empty(t, relay.flight)
		require.Empty(t, bad, "it is known that the broker lives on")
		relay.close()
		require.Zero(t, v.QueueLength(t, queue), "it was acknowledged")
	}
	listed := map[string]int{}
	for _, r := range v.ReadStream(t, wire.Journal) {
		j, err := wire.ParseJournal(r.Body)
		require.NoError(t, err)
		require.Equal(t, wire.TypeRejected, j.Type)
		require.Equal(t, []string{errRefusedTwice.Error(), string(body)}, []string{j.Reason, string(j.Body)})
		listed[j.Queue]++
	}
	require.Equal(t, map[string]int{wire.Unrouted: 1, wire.DeadLetters: 1}, listed)
	require.Empty(t, v.ReadStream(t, wire.DeadJobs))
}

// A leader that dies between burying a dead letter and acknowledging it leaves it to the next, which knows it: it is buried once.
func TestDeadLettersAreBuriedOnce(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: []byte(`{"class":"C","jid":"j"}`)})
	first, err := openRelay(t.Context(), conn, wire.DeadLetters, badBodies{})
	require.NoError(t, err)
	require.NoError(t, s.buryOne(first, <-first.from.Deliveries()))
	require.True(t, (<-first.to.Confirms())[0].Ack)
	first.close()
	dead := v.ReadStream(t, wire.DeadJobs)
	require.Len(t, dead, 1)
	var records []wire.Record
	for _, d := range dead {
		records = append(records, wire.Record{Stream: wire.DeadJobs, Offset: brokertest.Offset(d), UserID: d.UserId, Body: d.Body})
	}
	require.NoError(t, s.store.Apply(s.entries, wire.DeadJobs, records, func() error { return nil }, func([]string) {}))

	next, err := openRelay(t.Context(), conn, wire.DeadLetters, badBodies{})
	require.NoError(t, err)
	defer next.close()
	d := <-next.from.Deliveries()
	require.True(t, d.Redelivered)
	require.NoError(t, s.buryOne(next, d))
	require.Empty(t, next.flight, "it is known")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, wire.DeadLetters) == 0 }, "and acknowledged")
	require.Len(t, v.ReadStream(t, wire.DeadJobs), 1)
}
