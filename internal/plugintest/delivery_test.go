//go:build plugin

package plugintest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/connect"
)

// TestDelivery publishes delayed messages while the plugin's sidecar runs.
func TestDelivery(t *testing.T) {
	n := start(t, "") // which names no virtual host
	n.application(t).declare(t, "deliver.direct", "direct")
	n.await(t, "/")
	n.put(t, "/api/vhosts/imported", "{}")
	n.put(t, "/api/permissions/imported/guest", `{"configure":".*","write":".*","read":".*"}`)
	n.importExchange(t, "imported", "deliver.direct")
	n.await(t, "imported")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *node)
	}{
		{"messages to exchanges of each type", testDelivery},
		{"order", testOrder},
		{"exchange bound to another", testDeliveryThroughAnother},
		{"messages of the archived plugin", testArchived},
		{"files of the archived plugin", testRescue},
		{"restart while messages wait", testRestartWhileWaiting},
		{"counts", testCounts},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, n) }) {
			break
		}
	}
}

// sent is a message, and the time before which it must not arrive.
type sent struct {
	amqp.Publishing
	exchange, key string
	due           time.Time
}

// deliver publishes count messages with delays from least to most milliseconds to exchanges of each
// type.
func deliver(t *testing.T, a *application, count, least, most int) map[string]sent {
	t.Helper()
	all := map[string]sent{}
	for i := range count {
		inner := []string{"direct", "fanout", "topic", "headers"}[i%4]
		id := fmt.Sprint(inner, i, " ", t.Name())
		delay := least + rand.IntN(most-least+1)
		p := amqp.Publishing{
			Headers: headers(), ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, Priority: uint8(i % 10), CorrelationId: "c",
			ReplyTo: "replies", Expiration: "600000", MessageId: id, Timestamp: time.Unix(1795000000, 0).UTC(), Type: "type", AppId: "app",
			Body: fmt.Append(nil, "body ", i, "\xff"),
		}
		p.Headers["x-delay"], p.Headers["a"] = int32(delay), "1"
		if i%8 < 4 {
			p.UserId = "guest"
		}
		s := sent{p, "deliver." + inner, "order." + inner, time.Now().Add(time.Duration(delay) * time.Millisecond)}
		all[id] = s
		require.NoError(t, a.Publish(s.exchange, s.key, true, false, p))
	}
	return all
}

// arrivals takes as many messages from the queue, and some time longer, and compares them with
// those that were sent.
func arrivals(t *testing.T, a *application, queue string, all map[string]sent) {
	t.Helper()
	deliveries, err := a.Consume(queue, "", true, false, false, false, nil)
	require.NoError(t, err)
	jids, left := map[any]bool{}, maps.Clone(all)
	late := time.Duration(0)
	for wait := within; ; {
		select {
		case d, open := <-deliveries:
			now := time.Now()
			require.True(t, open)
			s, waits := left[d.MessageId]
			require.True(t, waits, "%s arrives twice", d.MessageId)
			delete(left, d.MessageId)
			require.False(t, now.Before(s.due), "%s arrives %s early", d.MessageId, s.due.Sub(now))
			late = max(late, now.Sub(s.due))
			require.Equal(t, s.exchange, d.Exchange)
			require.Equal(t, s.key, d.RoutingKey)
			jid := d.Headers["millrace-jid"]
			require.Regexp(t, "^[0-9a-f]{24}$", jid)
			require.False(t, jids[jid])
			jids[jid] = true
			delete(d.Headers, "millrace-jid")
			want := maps.Clone(s.Headers)
			want["x-delay"] = -want["x-delay"].(int32)
			d.Headers["time"] = d.Headers["time"].(time.Time).UTC()
			require.Equal(t, want, d.Headers)
			s.Timestamp = s.Timestamp.UTC()
			require.Equal(t, amqp.Publishing{
				Headers: s.Headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority,
				CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp.UTC(),
				Type: d.Type, UserId: d.UserId, AppId: d.AppId, Body: d.Body,
			}, s.Publishing)
			if len(left) == 0 {
				wait = 2 * time.Second
			}
		case <-time.After(wait):
			require.Empty(t, left, "%d of %d messages did not arrive", len(left), len(all))
			t.Logf("%d messages arrived, %s late at most", len(all), late.Round(time.Millisecond))
			return
		}
	}
}

// fabric declares exchanges of each type, which all lead to the queue.
func fabric(t *testing.T, a *application, queue string) {
	t.Helper()
	for inner, key := range map[string]string{"direct": "order.direct", "fanout": "", "topic": "order.#", "headers": ""} {
		a.declare(t, "deliver."+inner, inner)
		a.queue(t, queue, "deliver."+inner, key, amqp.Table{"x-match": "all", "a": "1"})
	}
}

// testDelivery sends messages that wait from one to five seconds. Each arrives once and in time,
// with all its properties.
func testDelivery(t *testing.T, n *node) {
	a := n.application(t)
	fabric(t, a, "arrivals")
	arrivals(t, n.application(t), "arrivals", deliver(t, a, 1000, 1000, 5000))
	require.Empty(t, a.returned)
}

// testOrder sends messages that fall due in another order than they are sent. Whole seconds lie
// between them, because messages that are due at about the same time may overtake each other.
func testOrder(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "order", "direct")
	a.queue(t, "order", "order", "", nil)
	for _, seconds := range []string{"5", "1", "3", "2", "4"} {
		a.send(t, "order", "", seconds+"000", amqp.Publishing{Body: []byte(seconds)})
	}
	for _, seconds := range []string{"1", "2", "3", "4", "5"} {
		require.Equal(t, seconds, string(a.receive(t, "order").Body))
	}
}

// testDeliveryThroughAnother publishes a message to a delayed exchange to which another is bound.
// It is delayed once: when it is due, its x-delay is negative.
func testDeliveryThroughAnother(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "front", "direct")
	a.declare(t, "back", "direct")
	require.NoError(t, a.ExchangeBind("back", "key", "front", false, nil))
	a.queue(t, "back", "back", "key", nil)
	due := time.Now().Add(time.Second)
	a.send(t, "front", "key", 1000, amqp.Publishing{Body: []byte("through")})
	d := a.receive(t, "back")
	require.False(t, time.Now().Before(due))
	require.Equal(t, "front", d.Exchange)
	require.EqualValues(t, -1000, d.Headers["x-delay"])
}

// testCounts compares what the management API says of an exchange with what waits for it.
func testCounts(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "counted", "direct")
	counted := func(want int) func() bool {
		return func() bool {
			one := n.get(t, "/api/exchanges/%2F/counted", guest).get("messages_delayed")
			return one.Exists() && one.Int() == int64(want)
		}
	}
	n.eventually(t, counted(0), "no message waits")
	for i := range 3 {
		a.send(t, "counted", "", hour, amqp.Publishing{Body: []byte{byte(i)}})
	}
	n.eventually(t, counted(3), "three messages wait")
	require.False(t, n.get(t, "/api/exchanges/%2F/amq.direct", guest).get("messages_delayed").Exists())
}

// testRestartWhileWaiting restarts the node before messages are due, and while others fall due.
func testRestartWhileWaiting(t *testing.T, n *node) {
	a := n.application(t)
	all := deliver(t, a, 100, 1, 20_000)
	a.send(t, "deliver.direct", "none", hour, amqp.Publishing{}) // all others are confirmed then
	require.NoError(t, n.Stop(t.Context()))
	require.NoError(t, n.Restart(t.Context()))
	arrivals(t, n.application(t), "arrivals", all)
}

// TestNoDelivery has the setting with which sidecars deliver nothing. Then messages that are due
// wait, and the sidecars' user may not write to the exchange.
func TestNoDelivery(t *testing.T) {
	n := start(t, "millrace.vhosts.1 = /\nmillrace.deliver_to = none\n")
	pid := n.await(t, "/")
	require.Empty(t, environment(t, pid, "MILLRACE_DELIVER_TO"))
	require.Equal(t, connect.Sidecar.Write, n.get(t, "/api/permissions/%2F/millrace_plugin", guest).get("write").String())
	a := n.application(t)
	a.declare(t, "undelivered", "direct")
	a.queue(t, "undelivered", "undelivered", "key", nil)
	a.send(t, "undelivered", "key", 100, amqp.Publishing{Body: []byte("waits")})
	n.eventually(t, func() bool {
		return n.get(t, "/api/queues/%2F/queue.millrace.messages", guest).status == http.StatusOK && n.vhost(t, "/").Get("overview.sets.scheduled-jobs.total").Int() == 0
	}, "the message is due")
	_, ok, err := a.Get("undelivered", true)
	require.NoError(t, err)
	require.False(t, ok)
}
