//go:build plugin

package plugintest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

const (
	delayedType = "x-delayed-message"
	hour        = int32(3_600_000) // in milliseconds
)

// TestDelayedExchange publishes through exchanges of the type x-delayed-message. No sidecar runs,
// so the records stay in the stream.
func TestDelayedExchange(t *testing.T) {
	n := start(t, "millrace.sidecar = /bin/false\n")
	for _, test := range []struct {
		name string
		run  func(*testing.T, *node)
	}{
		{"virtual host without a sidecar", testUnserved},
		{"record", testRecord},
		{"bodies", testBodies},
		{"forms of x-delay", testDelays},
		{"undelayed messages", testUndelayed},
		{"topics", testTopics},
		{"mandatory", testMandatory},
		{"messages that are refused", testRefusedMessages},
		{"messages through other exchanges", testOtherExchanges},
		{"dead letters", testDeadLetters},
		{"AMQP 1.0", testAMQP10},
		{"another plugin that intercepts messages", testInterceptor},
		{"enabling while channels are open", testEnablingUnderChannels},
		{"channel that knows another plugin's type", testOtherType},
		{"restart", testRestart},
		{"node that is killed after confirms", testKilledAfterConfirms},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(t, n) }) {
			break
		}
	}
}

// application is a client that publishes to delayed exchanges.
type application struct {
	*amqp.Channel
	returned chan amqp.Return
}

func (n *node) application(t *testing.T) *application {
	t.Helper()
	conn, ch, err := channel(n)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, ch.Confirm(false))
	return &application{ch, ch.NotifyReturn(make(chan amqp.Return, 100))}
}

// declare declares a delayed exchange.
func (a *application) declare(t *testing.T, name, inner string) {
	t.Helper()
	require.NoError(t, a.ExchangeDeclare(name, delayedType, true, false, false, false, amqp.Table{"x-delayed-type": inner}))
}

// queue declares a queue that is bound to an exchange.
func (a *application) queue(t *testing.T, name, exchange, key string, args amqp.Table) {
	t.Helper()
	_, err := a.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, a.QueueBind(name, key, exchange, false, args))
}

// send publishes a message with the header x-delay, and waits for the confirm.
func (a *application) send(t *testing.T, exchange, key string, delay any, p amqp.Publishing) {
	t.Helper()
	if p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	p.Headers["x-delay"] = delay
	confirm, err := a.PublishWithDeferredConfirm(exchange, key, true, false, p)
	require.NoError(t, err)
	confirmed, err := confirm.WaitContext(t.Context())
	require.NoError(t, err)
	require.True(t, confirmed)
}

// refused publishes a message, and returns why RabbitMQ closes the channel.
func (n *node) refused(t *testing.T, exchange, key string, p amqp.Publishing) string {
	t.Helper()
	a := n.application(t)
	closed := a.NotifyClose(make(chan *amqp.Error, 1))
	p.Headers = amqp.Table{"x-delay": hour}
	require.NoError(t, a.Publish(exchange, key, false, false, p))
	select {
	case why := <-closed:
		require.Equal(t, amqp.PreconditionFailed, why.Code, why.Reason)
		return why.Reason
	case <-time.After(within):
		require.Fail(t, "the channel is not closed")
		return ""
	}
}

// receive takes a message from a queue.
func (a *application) receive(t *testing.T, queue string) amqp.Delivery {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(often) {
		d, ok, err := a.Get(queue, true)
		require.NoError(t, err)
		if ok {
			return d
		}
		require.True(t, time.Now().Before(end), "%s is empty", queue)
	}
}

// record is a scheduled job whose argument is a message.
type record struct {
	message amqp.Delivery // which has the record

	Type        string
	JID         string
	ScheduledAt float64 `json:"scheduled_at"`
	Job         struct {
		Class, Queue, JID string
		CreatedAt         float64 `json:"created_at"`
		Args              []struct {
			Exchange         string
			RoutingKey       string  `json:"routing_key"`
			Body             *string // nil if it is in Base64
			BodyBase64       []byte  `json:"body_base64"`
			PropertiesBase64 []byte  `json:"properties_base64"`
		}
	}
}

// body returns the body of the delayed message.
func (r record) body() string {
	if r.Job.Args[0].Body != nil {
		return *r.Job.Args[0].Body
	}
	return string(r.Job.Args[0].BodyBase64)
}

// delay returns the delay in seconds.
func (r record) delay() float64 { return r.ScheduledAt - r.Job.CreatedAt }

// recordOf waits for the record of the message with this body.
func (n *node) recordOf(t *testing.T, body string) record {
	t.Helper()
	var found record
	n.eachRecord(t, func(r record) bool {
		found = r
		return r.body() != body
	})
	return found
}

// eachRecord calls next with the records in the stream until it returns false.
func (n *node) eachRecord(t *testing.T, next func(record) bool) {
	t.Helper()
	conn, ch, err := channel(n)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, ch.Qos(1000, 0, false))
	deliveries, err := ch.Consume("scheduled_jobs", "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	require.NoError(t, err)
	for {
		select {
		case d, open := <-deliveries:
			require.True(t, open)
			require.NoError(t, d.Ack(false))
			r := record{message: d}
			require.NoError(t, json.Unmarshal(d.Body, &r), "%s", d.Body)
			require.Equal(t, "scheduled_job", r.Type)
			require.Equal(t, r.JID, r.Job.JID)
			require.Len(t, r.Job.Args, 1)
			if !next(r) {
				return
			}
		case <-time.After(within):
			require.Fail(t, "the stream has no more records")
		}
	}
}

// testUnserved declares an exchange while the virtual host has no stream scheduled_jobs.
func testUnserved(t *testing.T, n *node) {
	a := n.application(t)
	err := a.ExchangeDeclare("early", delayedType, true, false, false, false, amqp.Table{"x-delayed-type": "direct"})
	var refusal *amqp.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, amqp.PreconditionFailed, refusal.Code)
	require.Contains(t, refusal.Reason, "no Millrace sidecar serves virtual host '/'")
	require.Contains(t, refusal.Reason, "The tab Jobs")
	body := `{"type":"x-delayed-message","durable":true,"arguments":{"x-delayed-type":"direct"}}`
	put := send(t, n.request(t, http.MethodPut, "/api/exchanges/%2F/early", guest, strings.NewReader(body)))
	require.Equal(t, http.StatusBadRequest, put.status, put.body)
	require.Contains(t, put.body, "no Millrace sidecar serves")

	n.importExchange(t, "/", "early")
	require.Contains(t, n.refused(t, "early", "", amqp.Publishing{}), "no Millrace sidecar serves")
	a = n.application(t)
	a.queue(t, "early", "early", "key", nil)
	a.send(t, "early", "key", 0, amqp.Publishing{Body: []byte("now")})
	require.Equal(t, "now", string(a.receive(t, "early").Body))

	n.put(t, "/api/queues/%2F/scheduled_jobs", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`)
	a.send(t, "early", "key", hour, amqp.Publishing{Body: []byte("later")})
	require.Equal(t, "later", n.recordOf(t, "later").body())
	for _, inner := range []any{nil, 1, delayedType} {
		err := n.application(t).ExchangeDeclare("bad", delayedType, true, false, false, false, amqp.Table{"x-delayed-type": inner})
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, amqp.PreconditionFailed, refusal.Code)
		require.Contains(t, refusal.Reason, "x-delayed-type must name")
	}
	err = n.application(t).ExchangeDeclare("bad", delayedType, true, false, false, false, amqp.Table{"x-delayed-type": "x-not-valid"})
	require.ErrorAs(t, err, &refusal)
	require.Contains(t, refusal.Reason, "x-not-valid")
}

// importExchange imports definitions with a delayed exchange.
func (n *node) importExchange(t *testing.T, vhost, name string) {
	t.Helper()
	definitions := `{"exchanges":[{"name":"` + name + `","type":"x-delayed-message","durable":true,"auto_delete":false,"internal":false,` +
		`"arguments":{"x-delayed-type":"direct"}}]}`
	imported := send(t, n.request(t, http.MethodPost, "/api/definitions/"+url.PathEscape(vhost), guest, strings.NewReader(definitions)))
	require.Less(t, imported.status, 300, imported.body)
}

// headers has a value of each type that the client library can send.
func headers() amqp.Table {
	return amqp.Table{
		"bool": true, "int8": int8(-8), "uint8": byte(200), "int16": int16(-1600), "int32": int32(-32), "int64": int64(1) << 60,
		"float": float32(1.5), "double": 2.25, "decimal": amqp.Decimal{Scale: 2, Value: 12345}, "string": "ü", "bytes": []byte{0, 255, 1},
		"time": time.Unix(1795000000, 0).UTC(), "table": amqp.Table{"nested": amqp.Table{"array": []any{int32(1), "two"}}},
		"array": []any{"a", int64(2), amqp.Table{"x": nil}}, "nil": nil, "x-bytes": []byte{1}, "empty": "",
	}
}

// testRecord compares a record with what was published: all properties, and headers of all types.
func testRecord(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "orders ü", "topic")
	published := amqp.Publishing{
		Headers: headers(), ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Transient, Priority: 7, CorrelationId: "correlation",
		ReplyTo: "replies", Expiration: "60000", MessageId: "id", Timestamp: time.Unix(1795000001, 0).UTC(), Type: "type", UserId: "guest", AppId: "app",
		Body: []byte("all \"properties\""),
	}
	before := time.Now()
	a.send(t, "orders ü", "order.\"created\"\\", hour, published)
	r := n.recordOf(t, string(published.Body))
	require.Equal(t, "millrace.Message", r.Job.Class)
	require.Equal(t, "millrace.messages", r.Job.Queue)
	require.Regexp(t, "^[0-9a-f]{24}$", r.JID)
	require.InDelta(t, float64(before.UnixMilli())/1000, r.Job.CreatedAt, 60)
	require.InDelta(t, 3600, r.delay(), 0.0001)
	message := r.Job.Args[0]
	require.Equal(t, "orders ü", message.Exchange)
	require.Equal(t, "order.\"created\"\\", message.RoutingKey)
	require.NotNil(t, message.Body)
	decoded := decode(t, message.PropertiesBase64)
	decoded.Body = published.Body
	require.Equal(t, published, decoded)

	stored := r.message
	require.Equal(t, r.JID, stored.MessageId)
	require.EqualValues(t, amqp.Persistent, stored.DeliveryMode)
	require.Equal(t, "guest", stored.UserId)
	require.Equal(t, "guest", stored.Headers["millrace-user-id"])

	// RabbitMQ checks what it would check without a delay.
	require.Contains(t, n.refused(t, "orders ü", "key", amqp.Publishing{UserId: "other"}), "user_id")
	require.Contains(t, n.refused(t, "orders ü", "key", amqp.Publishing{Expiration: "soon"}), "expiration")
}

// testBodies has bodies that are text, and that are not.
func testBodies(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "bodies", "fanout")
	var control strings.Builder
	for c := range 128 {
		control.WriteByte(byte(c))
	}
	large := strings.Repeat("ü\n", 20_000)
	for _, test := range []struct {
		body string
		text bool
	}{
		{"", true}, {"plain", true}, {`{"json": "\"\\"}`, true}, {`"` + control.String(), true}, {"\tindented\r\n", true}, {"日本語 😀 \u2028", true}, {large, true},
		{"\xff\xfe", false}, {control.String(), false}, {"\xed\xa0\x80", false}, {strings.Repeat(large, 2), false}, {strings.Repeat("\x00\xff", 1<<20), false},
	} {
		a.send(t, "bodies", "", hour, amqp.Publishing{Body: []byte(test.body)})
		r := n.recordOf(t, test.body)
		require.Equal(t, test.text, r.Job.Args[0].Body != nil)
		require.Equal(t, !test.text, r.Job.Args[0].BodyBase64 != nil)
		require.Equal(t, amqp.Publishing{Headers: amqp.Table{"x-delay": hour}}, decode(t, r.Job.Args[0].PropertiesBase64))
	}
}

// testDelays has each form that x-delay may have.
func testDelays(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "delays", "direct")
	a.queue(t, "delays", "delays", "key", nil)
	for name, delay := range map[string]any{"0": 0, "negative": int32(-5), "text": "soon", "empty": "", "nothing": nil, "bool": true, "digits, negative": "-5",
		"less than one": 0.9, "a table": amqp.Table{}, "a time": time.Now(), "a long number": strings.Repeat("9", 1000)} {
		a.send(t, "delays", "key", delay, amqp.Publishing{Body: []byte(name)})
		require.Equal(t, name, string(a.receive(t, "delays").Body))
	}
	for name, test := range map[string]struct {
		delay   any
		seconds float64
	}{
		"int8": {int8(100), 0.1}, "uint8": {byte(200), 0.2}, "int16": {int16(30_000), 30}, "int32": {int32(3_600_001), 3600.001},
		"int64": {int64(5_000_000_000), 5e6}, "float": {float32(1500), 1.5}, "double": {2500.9, 2.5}, "digits": {"4500", 4.5}, "bytes": {[]byte("5500"), 5.5},
	} {
		a.send(t, "delays", "key", test.delay, amqp.Publishing{Body: []byte(name)})
		require.InDelta(t, test.seconds, n.recordOf(t, name).delay(), 0.0001, name)
	}
	a.send(t, "delays", "key", int64(1)<<62, amqp.Publishing{Body: []byte("longest")})
	require.InDelta(t, 99_999_999_999, n.recordOf(t, "longest").ScheduledAt, 0)
	_, ok, err := a.Get("delays", true)
	require.NoError(t, err)
	require.False(t, ok, "nothing that waits is routed")
}

// testUndelayed routes messages without a delay, and those that a sidecar publishes, as each type.
func testUndelayed(t *testing.T, n *node) {
	a := n.application(t)
	for _, inner := range []string{"direct", "fanout", "topic", "headers"} {
		a.declare(t, "at-once."+inner, inner)
	}
	bind(t, a)
	route(t, a)
}

// bind binds queues to an exchange of each type.
func bind(t *testing.T, a *application) {
	t.Helper()
	a.queue(t, "direct", "at-once.direct", "one", nil)
	a.queue(t, "fanout", "at-once.fanout", "", nil)
	a.queue(t, "star", "at-once.topic", "*.created", nil)
	a.queue(t, "hash", "at-once.topic", "order.#", nil)
	a.queue(t, "middle", "at-once.topic", "#.x.*.#", nil)
	a.queue(t, "word", "at-once.topic", "order", nil)
	a.queue(t, "empty", "at-once.topic", "", nil)
	a.queue(t, "all", "at-once.headers", "", amqp.Table{"x-match": "all", "a": "1", "b": "2"})
	a.queue(t, "any", "at-once.headers", "", amqp.Table{"x-match": "any", "a": "1", "b": "2"})
}

// route publishes to these exchanges, and compares the queues in which the messages arrive.
func route(t *testing.T, a *application) {
	t.Helper()
	queues := []string{"direct", "fanout", "star", "hash", "middle", "word", "empty", "all", "any"}
	for _, test := range []struct {
		exchange, key string
		headers       amqp.Table
		arrive        string
	}{
		{"direct", "one", nil, "direct"},
		{"direct", "two", nil, ""},
		{"fanout", "two", nil, "fanout"},
		{"topic", "order.created", nil, "star hash"},
		{"topic", "order", nil, "hash word"},
		{"topic", "order.x.y", nil, "hash middle"},
		{"topic", "a.b.x.c.d", nil, "middle"},
		{"topic", "x", nil, ""},
		{"topic", "", nil, "empty"},
		{"topic", "a..created", nil, ""},
		{"headers", "", amqp.Table{"a": "1", "b": "2"}, "all any"},
		{"headers", "", amqp.Table{"a": "1"}, "any"},
		{"headers", "", amqp.Table{"a": "2"}, ""},
		{"direct", "none", amqp.Table{"CC": []any{"one"}}, "direct"},
		{"topic", "none", amqp.Table{"BCC": []any{"order"}}, "hash word"},
	} {
		for _, delay := range []int32{0, -hour} {
			p := amqp.Publishing{Headers: amqp.Table{}, Body: []byte(test.exchange + " " + test.key), MessageId: "mine"}
			for name, value := range test.headers {
				p.Headers[name] = value
			}
			a.send(t, "at-once."+test.exchange, test.key, delay, p)
			arrived := []string{}
			for _, queue := range queues {
				if d, ok, err := a.Get(queue, true); ok {
					require.NoError(t, err)
					require.Equal(t, delay, d.Headers["x-delay"])
					require.Equal(t, "at-once."+test.exchange, d.Exchange)
					arrived = append(arrived, queue)
				}
			}
			require.Equal(t, test.arrive, strings.Join(arrived, " "), "%s %q %v", test.exchange, test.key, test.headers)
			for range len(a.returned) {
				<-a.returned
			}
		}
	}
}

// testMandatory publishes messages that no binding matches. Delayed ones are not returned.
func testMandatory(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "unbound", "direct")
	a.send(t, "unbound", "none", hour, amqp.Publishing{Body: []byte("delayed, without a route")})
	require.Empty(t, a.returned)
	n.recordOf(t, "delayed, without a route")
	a.send(t, "unbound", "none", 0, amqp.Publishing{Body: []byte("undelayed")})
	require.Equal(t, "undelayed", string((<-a.returned).Body))

	require.NoError(t, a.ExchangeDeclare("others", "fanout", true, false, false, false, nil))
	a.queue(t, "others", "others", "", nil)
	require.NoError(t, a.ExchangeDeclare("alternate", delayedType, true, false, false, false,
		amqp.Table{"x-delayed-type": "direct", "alternate-exchange": "others"}))
	a.send(t, "alternate", "none", hour, amqp.Publishing{Body: []byte("delayed, with an alternate exchange")})
	n.recordOf(t, "delayed, with an alternate exchange")
	a.send(t, "alternate", "none", -hour, amqp.Publishing{Body: []byte("due")})
	require.Equal(t, "due", string(a.receive(t, "others").Body))
	require.Empty(t, a.returned)
}

// testRefusedMessages has messages that no record can hold.
func testRefusedMessages(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "limits", "direct")
	const largest = (16*1024 - 128) * 1024 / 4 * 3
	require.Contains(t, n.refused(t, "limits", "", amqp.Publishing{Body: make([]byte, largest)}), "must be smaller than 16 MiB")
	require.Contains(t, n.refused(t, "limits", "\xff", amqp.Publishing{}), "routing key")
	body := strings.Repeat("x", largest-1024)
	a.send(t, "limits", "", hour, amqp.Publishing{Body: []byte(body)})
	require.Equal(t, body, n.recordOf(t, body).body())

	// A transaction stores the record when it is committed.
	_, ch, err := channel(n)
	require.NoError(t, err)
	require.NoError(t, ch.Tx())
	require.NoError(t, ch.Publish("limits", "", false, false, amqp.Publishing{Headers: amqp.Table{"x-delay": hour}, Body: []byte("transaction")}))
	require.NoError(t, ch.TxCommit())
	n.recordOf(t, "transaction")
}
