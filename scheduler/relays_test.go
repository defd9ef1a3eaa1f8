package scheduler

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// working runs one part of a leadership until the test ends.
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

// prepared is a scheduler on a broker that has all it needs.
func prepared(t *testing.T) (*Scheduler, *broker.Conn, *brokertest.Vhost) {
	t.Helper()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.prepare(t.Context(), conn))
	s.assertWanted(t.Context())
	require.NoError(t, conn.Topology().EnsureRouting(t.Context()))
	return s, conn, v
}

// A leader that ends waits for the confirms of what it has published, and acknowledges it.
// Otherwise the next leader would publish it again.
func TestRelayEndsWithNothingInFlight(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	const n = broker.AtOnce
	jobs := make([]amqp.Publishing, n)
	for i := range jobs {
		jobs[i] = amqp.Publishing{Body: fmt.Appendf(nil, `{"class":"C","jid":"j-%d"}`, i), DeliveryMode: amqp.Persistent}
	}
	_, err := v.Channel(t).QueueDeclare(wire.OldDeadLetters, true, false, false, false, nil)
	require.NoError(t, err)
	v.Publish(t, "", wire.OldDeadLetters, jobs...)
	relay, err := openRelay(t.Context(), conn, wire.OldDeadLetters, badBodies{})
	require.NoError(t, err)
	for range n {
		require.NoError(t, s.buryLetter(relay, <-relay.from.Deliveries()))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, relay.run(ended, nil, nil, nil))
	require.Empty(t, relay.flight)
	relay.close()
	require.Zero(t, v.QueueLength(t, wire.OldDeadLetters), "all were acknowledged")
	require.Len(t, v.ReadStream(t, wire.DeadJobs), n)
}

// journaled returns the body that a journal record is about.
func journaled(t *testing.T, record []byte) string {
	t.Helper()
	j, err := wire.ParseJournal(record)
	require.NoError(t, err)
	return string(j.Body)
}

// The same with jobs.deadletters. The stream of dead jobs may be gone too, and a client may have
// declared the queue again. A message that ends the channel is listed in the end, so that the
// others pass.
func TestDeadLettersSurviveQueueDeletion(t *testing.T) {
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
		if m = s.deadJob(d); m.MessageID == "k" {
			m.Exchange = "no such exchange"
		}
		return m, true
	}
	require.NoError(t, relay.rescue(t.Context(), s, conn, become))
	require.Empty(t, v.ReadStream(t, wire.DeadJobs), "nothing is published to dead_jobs")

	d := <-relay.from.Deliveries()
	relay.unacked[d.Tag] = d
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

// A relayed message that no queue took is not done, although the broker confirms it. The relay
// keeps it until it is stored.
func TestUnroutedRelayIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)})
	_, err := v.Channel(t).QueueDelete(wire.DeadJobs, false, false, false)
	require.NoError(t, err)
	working(t, func(ctx context.Context) error { return s.consumeDeadLetters(ctx, conn) })
	brokertest.Eventually(t, func() bool {
		_, err := v.Channel(t).QueueDeclarePassive(wire.DeadJobs, false, false, false, false, nil)
		return err == nil && len(v.ReadStream(t, wire.DeadJobs)) == 1
	}, "it is buried once there is a stream again")
	require.Zero(t, v.QueueLength(t, wire.DeadLetters))
}

// A body that ended the channel each time it was published is not published again. It is listed,
// with the reason, and removed from the queue.
func TestBodyThatEndsChannelIsListed(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	body := []byte(`{"class":"C","jid":"bad"}`)
	bad := badBodies{sha256.Sum256(body): maxKills}
	relay, err := openRelay(t.Context(), conn, wire.DeadLetters, bad)
	require.NoError(t, err)
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: body})
	require.NoError(t, s.buryLetter(relay, <-relay.from.Deliveries()))
	require.NoError(t, relay.confirmed([]broker.Confirm{{Tag: 1 << 40}}), "a confirm of nothing")
	require.Len(t, relay.flight, 1)
	require.NoError(t, relay.confirmed(<-relay.to.Confirms()))
	require.Empty(t, relay.flight)
	require.Empty(t, bad, "it is known that the broker did not restart")
	relay.close()
	require.Zero(t, v.QueueLength(t, wire.DeadLetters), "it was acknowledged")
	listed := v.ReadStream(t, wire.Journal)
	require.Len(t, listed, 1)
	j, err := wire.ParseJournal(listed[0].Body)
	require.NoError(t, err)
	require.Equal(t, []string{wire.TypeRejected, wire.DeadLetters, errRefusedTwice.Error(), string(body)}, []string{j.Type, j.Queue, j.Reason, string(j.Body)})
	require.Empty(t, v.ReadStream(t, wire.DeadJobs))
}

// A leader dies between the burial of a dead letter and its acknowledgement. The next leader
// recognizes it: it is buried once.
func TestDeadLettersAreBuriedOnce(t *testing.T) {
	t.Parallel()
	s, conn, v := prepared(t)
	v.Publish(t, "", wire.DeadLetters, amqp.Publishing{Body: []byte(`{"class":"C","jid":"j"}`)})
	first, err := openRelay(t.Context(), conn, wire.DeadLetters, badBodies{})
	require.NoError(t, err)
	require.NoError(t, s.buryLetter(first, <-first.from.Deliveries()))
	require.True(t, (<-first.to.Confirms())[0].Ack)
	first.close()
	dead := v.ReadStream(t, wire.DeadJobs)
	require.Len(t, dead, 1)
	var records []wire.Record
	for _, d := range dead {
		records = append(records, wire.Record{Stream: wire.DeadJobs, Offset: brokertest.Offset(d), UserID: d.UserId, Body: d.Body})
	}
	require.NoError(t, s.store.Apply(s.fold(), wire.DeadJobs, records, func() error { return nil }, func([]string) {}))

	next, err := openRelay(t.Context(), conn, wire.DeadLetters, badBodies{})
	require.NoError(t, err)
	defer next.close()
	d := <-next.from.Deliveries()
	require.True(t, d.Redelivered)
	require.NoError(t, s.buryLetter(next, d))
	require.Empty(t, next.flight, "it is known")
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, wire.DeadLetters) == 0 }, "and acknowledged")
	require.Len(t, v.ReadStream(t, wire.DeadJobs), 1)
}
