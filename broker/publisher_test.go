package broker_test

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func publisher(t *testing.T, c *broker.Conn) *broker.Publisher {
	t.Helper()
	p, err := c.Publisher(soon(t))
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// collect reads n confirms.
func collect(t *testing.T, p *broker.Publisher, n int) map[uint64]bool {
	t.Helper()
	got, late := map[uint64]bool{}, time.After(time.Minute)
	for len(got) < n {
		select {
		case confirms := <-p.Confirms():
			require.NotEmpty(t, confirms)
			for _, c := range confirms {
				_, twice := got[c.Tag]
				require.False(t, twice, c.Tag)
				got[c.Tag] = c.Ack
			}
		case <-late:
			t.Fatalf("%d of %d confirms", len(got), n)
		}
	}
	return got
}

// rest reads the confirms of a publisher that is about to be done.
func rest(t *testing.T, p *broker.Publisher) map[uint64]bool {
	t.Helper()
	got, late := map[uint64]bool{}, time.After(10*time.Second)
	for {
		select {
		case confirms := <-p.Confirms():
			for _, c := range confirms {
				got[c.Tag] = c.Ack
			}
		case <-p.Done():
			require.Empty(t, p.Confirms())
			return got
		case <-late:
			t.Fatal("the publisher has not ended")
		}
	}
}

func TestSlowReaderGetsAllConfirms(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("many", true, false, false, false, nil)
	require.NoError(t, err)
	conn := dial(t, v.AMQPURL())
	p := publisher(t, conn)
	const n = 20_000
	for i := range n {
		tag, err := p.Publish(wire.Message{Key: "many", Body: []byte("{}")})
		require.NoError(t, err)
		require.EqualValues(t, i+1, tag)
	}
	other := publisher(t, conn) // confirms that were not read do not block the connection
	require.NoError(t, other.Send(soon(t), wire.Message{Key: "many", Body: []byte("{}")}))
	for tag, ack := range collect(t, p, n) {
		if !ack {
			t.Fatal(tag)
		}
	}
	messages, _, err := conn.Queues().Depth(soon(t), "many")
	require.NoError(t, err)
	require.Equal(t, n+1, messages)
}

func TestRefusedFireIsNacked(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, conn.Queues().Ensure(soon(t), "full"))
	put(t, v, "/api/policies/"+v.Name+"/limit", `{"pattern":"^queue\\.full$","definition":{"max-length":2,"overflow":"reject-publish"}}`)
	p := publisher(t, conn)
	require.Eventually(t, func() bool {
		return p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: "full", Body: []byte("{}")}) != nil
	}, time.Minute, 10*time.Millisecond)
	require.ErrorIs(t, p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: "full"}), broker.ErrNacked)
	tag, err := p.Publish(wire.Message{Exchange: wire.ExchangeFire, Key: "full"})
	require.NoError(t, err)
	require.Equal(t, map[uint64]bool{tag: false}, collect(t, p, 1))
	require.NoError(t, conn.Queues().Ensure(soon(t), "free"))
	require.NoError(t, p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: "free"}))
}

// The broker confirms a message that no queue took. The publisher must not report it as confirmed.
func TestUnroutableFireIsNotConfirmed(t *testing.T) {
	for _, exchange := range []string{wire.ExchangeFire, wire.ExchangeBury} {
		t.Run(exchange, func(t *testing.T) {
			v := brokertest.New(t)
			conn := dial(t, v.AMQPURL())
			makeAll(t, v.AMQPURL(), conn)
			p := publisher(t, conn)
			tag, err := p.Publish(wire.Message{Exchange: exchange, Key: "q", Body: []byte("{}")})
			require.NoError(t, err)
			require.Equal(t, map[uint64]bool{tag: true}, collect(t, p, 1))

			ch := client(t, v.AMQPURL())
			require.NoError(t, ch.ExchangeUnbind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil))
			require.NoError(t, ch.QueueUnbind(wire.DeadJobs, "", wire.ExchangeBury, nil))
			require.NoError(t, ch.QueueUnbind(wire.Journal, "", exchange, nil))
			for range 100 {
				if _, err := p.Publish(wire.Message{Exchange: exchange, Key: "q", Body: []byte("{}")}); err != nil {
					break // it has ended
				}
			}
			require.Empty(t, rest(t, p))
			require.ErrorIs(t, p.Err(), broker.ErrReturned)
			_, err = p.Publish(wire.Message{Exchange: exchange, Key: "q"})
			require.ErrorIs(t, err, broker.ErrReturned)
		})
	}
}

// A strict publisher reports what no queue took. It distinguishes that from what a queue refused,
// which LavinMQ returns as well.
func TestStrictPublisherReportsUnroutableMessages(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("full", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	_, err = ch.QueueDeclare("free", true, false, false, false, nil)
	require.NoError(t, err)
	v.Publish(t, "", "full", amqp.Publishing{})
	p, err := conn.StrictPublisher(soon(t))
	require.NoError(t, err)
	defer p.Close()
	want := map[uint64]broker.Confirm{}
	for i, key := range []string{"free", "nowhere", "full", "nowhere", "free"} {
		tag, err := p.Publish(wire.Message{Key: key, Body: []byte("{}")})
		require.NoError(t, err)
		want[tag] = broker.Confirm{Tag: uint64(i + 1), Ack: key == "free", Returned: key == "nowhere"}
	}
	got := map[uint64]broker.Confirm{}
	for len(got) < len(want) {
		select {
		case confirms := <-p.Confirms():
			for _, c := range confirms {
				got[c.Tag] = c
			}
		case <-soon(t).Done():
			require.Fail(t, "confirms are missing", "%v", got)
		}
	}
	require.Equal(t, want, got)
	require.NoError(t, p.Err())
}

func TestPropertiesOfPublishedMessages(t *testing.T) {
	v := brokertest.New(t)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	p := publisher(t, dial(t, v.AMQPURL()))
	at := time.Unix(1_800_000_000, 0)
	require.NoError(t, p.Send(soon(t), wire.Message{Key: "q", MessageID: "jid", Type: "Mail", Timestamp: at, Priority: 7, ReplyTo: "amq.x", CorrelationID: "c",
		Headers: map[string]any{"millrace-op": "fired", "millrace-offset": int64(1) << 40}, Body: []byte(`{"a":1}`)}))
	d, ok, err := ch.Get("q", true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, v.Owner.Name, d.UserId)
	require.Equal(t, "millrace", d.AppId)
	require.Equal(t, "application/json", d.ContentType)
	require.EqualValues(t, 2, d.DeliveryMode)
	require.EqualValues(t, 7, d.Priority)
	require.Equal(t, at.Unix(), d.Timestamp.Unix())
	require.Equal(t, []string{"jid", "Mail", "amq.x", "c"}, []string{d.MessageId, d.Type, d.ReplyTo, d.CorrelationId})
	require.Equal(t, amqp.Table{"millrace-op": "fired", "millrace-offset": int64(1) << 40}, d.Headers)

	for _, unsafe := range []string{strings.Repeat("x", 256), "amqp-1.0", "\xff"} {
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "q", MessageID: unsafe, Type: unsafe}))
		d, _, err := ch.Get("q", true)
		require.NoError(t, err)
		require.Empty(t, d.MessageId)
		require.Empty(t, d.Type)
	}
}
