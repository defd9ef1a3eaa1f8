package garbagetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// vandal is a client that writes every kind of garbage, and good jobs in between.
type vandal struct {
	t       *testing.T
	user    *brokertest.User
	ch      *amqp.Channel
	random  *rand.Rand
	closed  <-chan *amqp.Error
	last    *amqp.DeferredConfirmation
	good    map[string]bool  // the jids of the good jobs
	refused map[string]int64 // number of bad records, by stream

	features broker.Features
}

func newVandal(t *testing.T, v *brokertest.Vhost) *vandal {
	user := v.AddUser(t, "vandal", brokertest.Permissions{})
	ch, err := user.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	return &vandal{t: t, user: user, ch: ch, closed: ch.NotifyClose(make(chan *amqp.Error, 1)), random: rand.New(rand.NewPCG(3, 10)), good: map[string]bool{}, refused: map[string]int64{}, features: v.Features(t)}
}

func (x *vandal) publish(exchange, key string, m amqp.Publishing) {
	c, err := x.ch.PublishWithDeferredConfirmWithContext(x.t.Context(), exchange, key, false, false, m)
	require.NoError(x.t, err)
	x.last = c
}

// confirmed waits until the broker has confirmed everything.
func (x *vandal) confirmed() {
	ok, err := x.last.WaitContext(x.t.Context())
	require.NoError(x.t, err)
	if !ok {
		require.FailNow(x.t, "the broker threw the vandal out", "%v", <-x.closed)
	}
}

// forged returns headers that only Millrace may set.
func (x *vandal) forged() amqp.Table {
	values := []any{int64(0), int64(1), int64(-1), int64(1 << 62), "fired", "buried", wire.ScheduledJobs, "", nil, true, 1.5, []byte("x"), amqp.Table{"a": []any{int64(1)}}}
	names := []string{wire.HeaderFormat, wire.HeaderOp, wire.HeaderStream, wire.HeaderOffset, wire.HeaderJID, wire.HeaderEpoch, wire.HeaderSeq,
		wire.HeaderConfirmed, wire.HeaderFirst, wire.HeaderTraceparent, "x-death", "x-stream-offset", "CC"}
	all := amqp.Table{}
	for range x.random.IntN(6) {
		if name := names[x.random.IntN(len(names))]; name != "CC" {
			all[name] = values[x.random.IntN(len(values))]
		}
	}
	return all
}

// odd returns a message with unusual properties.
func (x *vandal) odd(body []byte) amqp.Publishing {
	m := amqp.Publishing{Body: body, Headers: x.forged()}
	text := []string{"", "x", "amqp-1.0", "\xff", strings.Repeat("y", 255), "text/plain", "gzip"}
	for _, property := range []*string{&m.ContentType, &m.ContentEncoding, &m.CorrelationId, &m.ReplyTo, &m.MessageId, &m.Type, &m.AppId} {
		*property = text[x.random.IntN(len(text))]
	}
	if x.features.ClosesOnOddProperties { // the broker would close the connection of the vandal
		m.ReplyTo, m.Type = strings.ToValidUTF8(m.ReplyTo, ""), strings.TrimPrefix(m.Type, "amqp-1.0")
	}
	if x.random.IntN(2) == 0 {
		m.UserId = x.user.Name // the broker refuses any other
	}
	m.Priority, m.Timestamp = uint8(x.random.IntN(256)), time.Unix(x.random.Int64N(1<<33), 0)
	return m
}

// write writes one record to a stream.
func (x *vandal) write(stream string, body []byte) {
	m := x.odd(body)
	replaces := x.random.IntN(8) == 0
	if replaces {
		m.Headers[wire.HeaderReplaces] = x.random.Int64N(100)
	}
	x.publish("", stream, m)
	if refused(stream, body, replaces) {
		x.refused[stream]++
	}
}

const queue = "good"

// honest publishes a good job, in each possible way in turn.
func (x *vandal) honest() {
	jid := fmt.Sprintf("good-%d", len(x.good))
	x.good[jid] = true
	job := fmt.Sprintf(`{"class":"C","args":[],"queue":%q,"jid":%q}`, queue, jid)
	switch len(x.good) % 3 {
	case 0:
		x.publish("", wire.ScheduledJobs, amqp.Publishing{Body: fmt.Appendf(nil, `{"jid":%q,"scheduled_at":%d,"job":%s}`, jid, time.Now().Unix()-1, job)})
	case 1:
		x.publish("", wire.Retries, amqp.Publishing{Body: fmt.Appendf(nil, `{"jid":%q,"retry_at":%d,"job":%s}`, jid, time.Now().Unix()-1, job)})
	case 2:
		x.publish(wire.ExchangeDirect, queue, amqp.Publishing{Body: []byte(job)})
	}
}

// sized returns a good entry of n bytes.
func sized(n int) []byte {
	head, tail := `{"jid":"j","scheduled_at":4e9,"job":{"class":"A","args":"`, `"}}`
	return []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
}

func TestGarbageEverywhere(t *testing.T) {
	for _, native := range []bool{true, false} {
		t.Run(fmt.Sprintf("native=%v", native), func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			if native && v.StreamURL() == "" {
				t.Skip("this broker does not speak the stream protocol")
			}
			s := start(t, v, "a", native).leads(t)
			epoch := s.Status().Epoch
			x := newVandal(t, v)
			streams := append([]string{wire.Journal}, viewed...)
			x.toStreams(streams)
			x.inBulk(streams)
			x.toQueues()
			if native {
				x.natively(v)
			}
			x.honest()
			x.confirmed()

			x.requireGoodJobs(v)
			x.requireRejects(s)
			require.True(t, s.Status().Leader)
			require.Equal(t, epoch, s.Status().Epoch, "no epoch ended")
			require.Equal(t, int64(1), s.Status().Counters.Epochs)

			later := start(t, v, "b", native)
			brokertest.Eventually(t, func() bool { return later.view.Followed(append(viewed, wire.Journal)...) }, "another sidecar has read it all")
			x.requireRejects(later)
			for stream := range x.refused {
				require.Empty(t, cmp.Diff(s.rejected(t, stream), later.rejected(t, stream)), "it reads the same from %s", stream)
			}
			requireSame(t, s, later)
		})
	}
}

// toStreams writes all bodies to every stream, and good jobs in between.
func (x *vandal) toStreams(streams []string) {
	all := bodies(x.t, x.random)
	for i, body := range all {
		for _, stream := range streams {
			x.write(stream, body)
		}
		if i%20 == 0 {
			x.honest()
		}
		if i%200 == 0 {
			x.confirmed()
		}
	}
	x.confirmed()
}

// inBulk writes large records: to every stream one that is too long and one that is nested too
// deeply, and one that is just small enough.
func (x *vandal) inBulk(streams []string) {
	for _, stream := range streams {
		if wire.MaxRecord < x.features.MessageLimit {
			x.write(stream, sized(wire.MaxRecord+1))
		}
		x.write(stream, []byte(strings.Repeat("[", 10_000_000)))
		x.honest()
		x.confirmed()
	}
	x.write(wire.ScheduledJobs, sized(wire.MaxRecord))
	x.write(wire.Retries, []byte(strings.Repeat(`{"a":`, 2_000_000)))
}

// toQueues writes to the queues that the leader reads.
func (x *vandal) toQueues() {
	for i, body := range bodies(x.t, x.random)[:200] {
		x.publish("", wire.LeaderInbox, x.odd(body))
		x.publish(wire.ExchangeDead, "", x.odd(body))
		if _, err := wire.ParseEntry(wire.DeadJobs, 0, body); err != nil {
			if _, err := wire.ParseJob(body); err != nil {
				x.refused[wire.DeadLetters]++
			}
		}
		if i < 20 {
			x.publish(wire.ExchangeDirect, fmt.Sprintf("no\x01queue%d", i), x.odd(body))
			x.publish(wire.ExchangeDirect, strings.Repeat("q", 201+i), x.odd(body))
			x.refused[wire.Gated] += 2
			x.honest()
		}
	}
	x.confirmed()
}

// natively writes records that only native readers can read. They count like all others.
func (x *vandal) natively(v *brokertest.Vhost) {
	var all []string
	for i := range 25 {
		all = append(all, "garbage")
		x.refused[wire.ScheduledJobs]++
		jid := fmt.Sprintf("good-native-%d", i)
		x.good[jid] = true
		all = append(all, fmt.Sprintf(`{"jid":%q,"scheduled_at":%d,"job":{"class":"C","args":[],"queue":%q,"jid":%q}}`, jid, time.Now().Unix()-1, queue, jid))
	}
	publishNative(x.t, v.StreamURL(), wire.ScheduledJobs, all...)
}

// requireGoodJobs checks that every good job was delivered once.
func (x *vandal) requireGoodJobs(v *brokertest.Vhost) {
	ch := v.Channel(x.t)
	deliveries, err := ch.Consume(wire.QueuePrefix+queue, "", true, false, false, false, nil)
	require.NoError(x.t, err)
	came := map[string]int{}
	deadline := time.After(time.Minute)
	for len(came) < len(x.good) {
		select {
		case d := <-deliveries:
			job, err := wire.ParseJob(d.Body)
			require.NoError(x.t, err)
			if x.good[job.JID] {
				came[job.JID]++
			}
		case <-deadline:
			require.FailNow(x.t, "good jobs are missing", "%d of %d came", len(came), len(x.good))
		}
	}
	for jid, n := range came {
		require.Equal(x.t, 1, n, jid)
	}
}

// requireRejects checks that each bad record is counted, and listed with its reason.
func (x *vandal) requireRejects(s *sidecar) {
	x.t.Helper()
	for stream, want := range x.refused {
		brokertest.EventuallyWithin(x.t, time.Minute, func() bool { return s.entries.State().Rejected[stream] >= want }, "all %d bad records of %s", want, stream)
		require.Equal(x.t, want, s.entries.State().Rejected[stream], stream)
		reasons := map[string]int{}
		for _, r := range s.rejected(x.t, stream) {
			require.NotEmpty(x.t, r.Reason)
			reasons[r.Reason]++
		}
		if stream != wire.Journal && stream != wire.Gated {
			require.Greater(x.t, len(reasons), 2, "%s: %v", stream, reasons)
		}
	}
}

// requireSame checks that two sidecars have the same pending entries.
func requireSame(t *testing.T, a, b *sidecar) {
	t.Helper()
	list := func(s *sidecar, stream string) (all []tracker.Row) {
		require.NoError(t, s.entries.List(stream, tracker.Cursor{}, func(r tracker.Row) bool {
			all = append(all, r)
			return true
		}))
		return all
	}
	for _, stream := range wire.EntryStreams {
		brokertest.Eventually(t, func() bool { return cmp.Equal(list(a, stream), list(b, stream)) }, "both have the same pending in %s", stream)
		require.Equal(t, a.entries.Total(stream), b.entries.Total(stream))
	}
}
