package broker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestSendMandatory(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	p := publisher(t, conn)
	for range 50 {
		require.ErrorIs(t, p.SendMandatory(soon(t), wire.Message{Key: "nowhere", Body: []byte("x")}), broker.ErrReturned)
		require.NoError(t, p.SendMandatory(soon(t), wire.Message{Key: "q", Body: []byte("x")}))
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "nowhere", Body: []byte("x")}), "only mandatory messages are returned")
	}
}

func TestSendEndsWithContext(t *testing.T) {
	v := brokertest.New(t)
	p := publisher(t, dial(t, v.AMQPURL()))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, p.Send(ctx, wire.Message{Key: "q"}), context.Canceled)
}

func TestUnpublishableMessageEndsNoChannel(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	p := publisher(t, conn)
	long := strings.Repeat("x", 256)
	for name, m := range map[string]wire.Message{
		"exchange":       {Exchange: long},
		"key":            {Key: long},
		"reply_to":       {ReplyTo: long},
		"reply_to utf8":  {ReplyTo: "\xff"},
		"correlation":    {CorrelationID: long},
		"header name":    {Headers: map[string]any{long: "x"}},
		"no header name": {Headers: map[string]any{"": "x"}},
		"x- header":      {Headers: map[string]any{"x-death": "x"}},
		"BCC":            {Headers: map[string]any{"BCC": "x"}},
		"é header":       {Headers: map[string]any{"é": "x"}},
		"header utf8":    {Headers: map[string]any{"a": "\xff"}},
		"header type":    {Headers: map[string]any{"a": struct{}{}}},
		"header int":     {Headers: map[string]any{"a": 1}},
		"header float":   {Headers: map[string]any{"a": 1.5}},
		"header table":   {Headers: map[string]any{"a": amqp.Table{}}},
		"header size":    {Headers: map[string]any{"a": strings.Repeat("x", 130_000)}},
	} {
		_, err := p.Publish(m)
		require.ErrorIs(t, err, broker.ErrUnpublishable, name)
		require.ErrorIs(t, p.Send(soon(t), m), broker.ErrUnpublishable, name)
		require.ErrorIs(t, p.SendMandatory(soon(t), m), broker.ErrUnpublishable, name)
	}
	tag, err := p.Publish(wire.Message{Key: "nowhere", Headers: map[string]any{"a": strings.Repeat("x", 120_000), "b": int64(1), "c": true}})
	require.NoError(t, err)
	require.EqualValues(t, 1, tag)
	require.Equal(t, map[uint64]bool{1: true}, collect(t, p, 1))
	require.NoError(t, conn.Err())
}

func TestUnknownExchangeEndsOnlyThePublisher(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	p := publisher(t, conn)
	_, err := p.Publish(wire.Message{Exchange: "nowhere"})
	require.NoError(t, err)
	require.Empty(t, rest(t, p), "its one message is in doubt")
	require.ErrorIs(t, p.Err(), broker.ErrLost)
	require.ErrorContains(t, p.Err(), "nowhere")
	_, err = p.Publish(wire.Message{})
	require.ErrorIs(t, err, broker.ErrLost)
	require.ErrorIs(t, p.Send(soon(t), wire.Message{}), broker.ErrLost)
	require.ErrorIs(t, p.SendMandatory(soon(t), wire.Message{}), broker.ErrLost)
	require.NoError(t, conn.Err())
	require.NoError(t, p.Close())
}

func TestConfirmsBeforeChannelEndAreKept(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	p := publisher(t, conn)
	for range 100 {
		_, err := p.Publish(wire.Message{Key: "q"})
		require.NoError(t, err)
	}
	require.NoError(t, p.Send(soon(t), wire.Message{Key: "q"})) // behind them in the same queue
	_, err = p.Publish(wire.Message{Exchange: "nowhere"})
	require.NoError(t, err)
	known := rest(t, p)
	require.Len(t, known, 100)
	for tag, ack := range known {
		require.True(t, ack, tag)
	}
}

func TestReplies(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	leader := consumerOfLock(t, conn)
	p := publisher(t, conn)
	ch := client(t, v.AMQPURL())
	replies, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	require.NoError(t, err)
	ask := func(replyTo string) wire.Delivery {
		require.NoError(t, ch.Publish("", wire.LeaderInbox, true, false, amqp.Publishing{ReplyTo: replyTo, CorrelationId: "id", Headers: amqp.Table{"millrace-op": "forged"}}))
		return next(t, leader)
	}
	require.NoError(t, p.Reply(soon(t), ask("amq.rabbitmq.reply-to"), []byte(`{"status":204}`)))
	select {
	case r := <-replies:
		require.Equal(t, "id", r.CorrelationId)
		require.JSONEq(t, `{"status":204}`, string(r.Body))
		require.Empty(t, r.Headers)
		require.Equal(t, v.Owner.Name, r.UserId)
	case <-time.After(10 * time.Second):
		t.Fatal("no reply")
	}

	_, err = ch.QueueDeclare("job_journal", true, false, false, false, nil)
	require.NoError(t, err)
	for _, refused := range []string{"job_journal", "", "amq.gen-gone", "amq.rabbitmq.reply-to.forged", "amq.rabbitmq.reply-to.g1h2", "amq."} {
		d := ask("")
		d.ReplyTo = refused
		require.NoError(t, p.Reply(soon(t), d, []byte("{}")), refused)
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "nowhere"}), "%q must not end the channel", refused)
	}
	messages, _, err := conn.Queues().Depth(soon(t), "job_journal")
	require.NoError(t, err)
	require.Zero(t, messages)
}

func consumerOfLock(t *testing.T, c *broker.Conn) *broker.Consumer {
	t.Helper()
	lock, err := c.Lock(soon(t))
	require.NoError(t, err)
	return lock.Inbox
}

func TestAskerGetsAnswers(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	asker, answers, err := conn.Asker(t.Context())
	require.NoError(t, err)
	ch := v.Channel(t)
	inbox, err := ch.QueueDeclare("inbox", false, false, true, false, nil)
	require.NoError(t, err)
	for _, id := range []string{"1", "2"} {
		require.NoError(t, asker.SendMandatory(t.Context(), wire.Message{Key: inbox.Name, ReplyTo: broker.DirectReply, CorrelationID: id, Body: []byte("{}")}))
	}
	for _, id := range []string{"1", "2"} {
		asked, found, err := ch.Get(inbox.Name, true)
		require.NoError(t, err)
		require.True(t, found)
		require.NoError(t, ch.Publish("", asked.ReplyTo, false, false, amqp.Publishing{CorrelationId: asked.CorrelationId, Body: []byte("answer")}))
		d := <-answers
		require.Equal(t, id, d.CorrelationID)
		require.Equal(t, "answer", string(d.Body))
	}
	require.NoError(t, conn.Close())
	_, open := <-answers
	require.False(t, open)
}
