package messages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// world has a broker, and a sidecar that delivers to the exchanges app.* and to the default one.
type world struct {
	*brokertest.Vhost
	sidecar *sidecar.Process
	amqp    string // the sidecar's broker
}

func newWorld(t *testing.T, url func(*brokertest.Vhost) string) *world {
	t.Helper()
	w := &world{Vhost: brokertest.New(t)}
	w.amqp = url(w.Vhost)
	w.start(t)
	return w
}

func direct(v *brokertest.Vhost) string { return v.AMQPURL() }

func (w *world) start(t *testing.T) {
	t.Helper()
	binary, err := sidecar.Binary()
	require.NoError(t, err)
	w.sidecar, err = sidecar.Start(sidecar.Config{Binary: binary, AMQPURL: w.amqp, ManagementURL: w.ManagementURL(), StreamURL: w.StreamURL(),
		LogLevel: "warn", Output: os.Stderr, More: []string{"--deliver-to", `|app\..*`}})
	require.NoError(t, err)
	t.Cleanup(w.sidecar.Kill)
	brokertest.Eventually(t, w.sidecar.Ready, "the sidecar is ready")
}

// delay has a message wait until a time, as any AMQP client can.
func (w *world) delay(t *testing.T, jid string, at time.Time, form map[string]any) {
	t.Helper()
	record, err := json.Marshal(map[string]any{"type": "scheduled_job", "jid": jid, "scheduled_at": float64(at.UnixMilli()) / 1e3,
		"job": map[string]any{"jid": jid, "class": wire.MessageClass, "queue": wire.MessageQueue, "args": []any{form}}})
	require.NoError(t, err)
	w.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{Body: record})
}

// receive returns the next message of a queue.
func (w *world) receive(t *testing.T, queue string) (d amqp.Delivery) {
	t.Helper()
	brokertest.Eventually(t, func() (ok bool) {
		d, ok = w.Get(t, queue)
		return ok
	}, "a message in %s", queue)
	return d
}

// job returns what the API says of a job.
func (w *world) job(t *testing.T, jid string) gjson.Result {
	t.Helper()
	_, answer, err := w.sidecar.Do(http.MethodGet, "/api/jobs/"+jid, "")
	require.NoError(t, err)
	return gjson.ParseBytes(answer)
}

// The consumer gets the application's own message: its exchange, routing key, properties and body.
func TestMessageIsDeliveredUnchanged(t *testing.T) {
	w := newWorld(t, direct)
	ch := w.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("app.orders", "topic", true, false, false, false, nil))
	_, err := ch.QueueDeclare("mine", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("mine", "order.*", "app.orders", false, nil))

	published := amqp.Publishing{
		ContentType: "application/octet-stream", ContentEncoding: "x", DeliveryMode: amqp.Persistent, Priority: 7, CorrelationId: "c", ReplyTo: "r",
		Expiration: "600000", MessageId: "m", Timestamp: time.Unix(1795000000, 0), Type: "t", AppId: "a",
		Headers: amqp.Table{
			"x-delay": int32(500), "null": nil, "bool": true, "int8": int8(-1), "byte": byte(200), "int16": int16(-2), "int32": int32(-3), "int64": int64(-4),
			"float": float32(1.5), "double": 2.5, "decimal": amqp.Decimal{Scale: 2, Value: 314}, "text": "é", "bytes": []byte{0, 255},
			"time": time.Unix(1795000001, 0), "list": []any{int64(1), "x"}, "table": amqp.Table{"k": "v"},
		},
	}
	due := time.Now().Add(time.Second)
	w.delay(t, "unchanged1", due, map[string]any{"exchange": "app.orders", "routing_key": "order.created",
		"body_base64": inBase64([]byte{1, 0, 255}), "properties_base64": inBase64(block(published))})
	d := w.receive(t, "mine")
	require.False(t, time.Now().Before(due.Truncate(time.Millisecond)), "it was delivered early")
	published.Headers["x-delay"] = int32(-500)
	published.Headers["millrace-jid"] = "unchanged1"
	require.Equal(t, published, amqp.Publishing{
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Headers: d.Headers,
	})
	require.Equal(t, "app.orders order.created", d.Exchange+" "+d.RoutingKey)
	require.Equal(t, []byte{1, 0, 255}, d.Body)

	w.delay(t, "unchanged2", time.Now(), map[string]any{"exchange": "", "routing_key": "mine", "body": "hé", "properties": map[string]any{"headers": map[string]any{"n": 5}}})
	d = w.receive(t, "mine")
	require.Equal(t, amqp.Table{"n": int64(5), "millrace-jid": "unchanged2"}, d.Headers)
	require.Equal(t, "hé", string(d.Body))
}

// Programs without AMQP delay messages over HTTP, and may repeat the request under a key.
func TestMessageOverHTTPIsDelivered(t *testing.T) {
	w := newWorld(t, direct)
	ch := w.Channel(t)
	_, err := ch.QueueDeclare("mine", true, false, false, false, nil)
	require.NoError(t, err)
	status, answer, err := w.sidecar.Do(http.MethodPost, "/api/messages", `{"exchange":"","routing_key":"mine","body_base64":"AP8=","in":0.5,"properties":{"headers":{"n":9007199254740993}}}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status, "%s", answer)
	d := w.receive(t, "mine")
	require.Equal(t, []byte{0, 255}, d.Body)
	require.Equal(t, amqp.Table{"n": int64(9007199254740993), "millrace-jid": gjson.GetBytes(answer, "jid").String()}, d.Headers)

	once := fmt.Sprintf(`{"exchange":"","routing_key":"mine","at":%d}`, time.Now().Add(2*time.Second).Unix())
	var jids []string
	for range 2 {
		status, answer, err := w.sidecar.Do(http.MethodPost, "/api/messages", once, "Idempotency-Key", "order-7")
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, status, "%s", answer)
		jids = append(jids, gjson.GetBytes(answer, "jid").String())
	}
	require.Equal(t, jids[0], jids[1])
	require.Equal(t, jids[0], w.receive(t, "mine").Headers["millrace-jid"])
}

// What cannot be delivered waits and says why. It is delivered when it can be.
func TestUndeliverableMessages(t *testing.T) {
	w := newWorld(t, direct)
	ch := w.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("app.bound", "direct", true, false, false, false, nil))
	_, err := ch.QueueDeclare("full", true, false, false, false, amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("full", "full", "app.bound", false, nil))

	for n, c := range []struct{ exchange, key, state, why string }{
		{"app.missing", "k", "retries", "exchange 'app.missing'"},
		{"app.bound", "nowhere", "retries", `no queue is bound to exchange "app.bound" for routing key "nowhere"`},
		{"app.bound", "full", "retries", "a queue refused the message"},
		{"other", "k", "retries", "--deliver-to does not match it"},
		{"jobs.direct", "k", "dead-jobs", "only Millrace publishes to exchange"},
		{"", "job_journal", "dead-jobs", "only Millrace publishes to exchange"},
	} {
		jid := fmt.Sprint("undeliverable", n)
		w.delay(t, jid, time.Now(), map[string]any{"exchange": c.exchange, "routing_key": c.key, "body": "b"})
		var entry gjson.Result
		brokertest.Eventually(t, func() bool {
			entry = w.job(t, jid).Get("entries.0")
			return entry.Get("millrace.set").String() == c.state
		}, "%s is among the %s", jid, c.state)
		require.Contains(t, entry.Get("error_message").String(), c.why)
	}
	w.delay(t, "unreadable", time.Now(), map[string]any{"exchange": "app.bound", "topic": "k"})
	brokertest.Eventually(t, func() bool { return w.job(t, "unreadable").Get("entries.0.millrace.set").String() == "dead-jobs" }, "it is dead")

	_, err = ch.QueueDeclare("late", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("late", "nowhere", "app.bound", false, nil))
	status, answer, err := w.sidecar.Do(http.MethodPost, "/api/retries/undeliverable1/retry", "")
	require.NoError(t, err)
	require.Less(t, status, 300, "%s", answer)
	require.Equal(t, "undeliverable1", w.receive(t, "late").Headers["millrace-jid"])
}

// A message is delivered at least once, also when the sidecar dies and its connections break.
func TestNoMessageIsLost(t *testing.T) {
	var proxy *brokertest.Proxy
	w := newWorld(t, func(v *brokertest.Vhost) string {
		proxy = brokertest.NewProxy(t, v.AMQPURL())
		return proxy.URL()
	})
	ch := w.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("app.a", "fanout", true, false, false, false, nil))
	_, err := ch.QueueDeclare("all", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("all", "", "app.a", false, nil))
	deliveries, err := ch.Consume("all", "", true, false, false, false, nil)
	require.NoError(t, err)

	const total, faults = 2000, 6
	begun := time.Now()
	for n := range total {
		w.delay(t, fmt.Sprint("m", n), begun.Add(time.Duration(n)*4*time.Millisecond), map[string]any{"exchange": "app.a", "body": "b"})
	}
	seen, doubled, disturbed := map[string]bool{}, 0, 0
	limit := time.After(2 * time.Minute)
	for len(seen) < total {
		select {
		case d := <-deliveries:
			jid, _ := d.Headers["millrace-jid"].(string)
			if seen[jid] {
				doubled++
			}
			seen[jid] = true
		case <-limit:
			require.FailNow(t, "messages are missing", "%d of %d arrived", len(seen), total)
		}
		if disturbed < faults && len(seen) > (disturbed+1)*total/(faults+2) {
			if disturbed++; disturbed%2 == 0 {
				w.sidecar.Kill()
				w.start(t)
			} else {
				proxy.Cut(t)
				proxy.Heal(t)
			}
		}
	}
	t.Logf("%d messages, %d kills and cuts, 0 lost, %d delivered again", total, disturbed, doubled)
	require.LessOrEqual(t, doubled, faults*(atOnce+maxInDoubt))
}

// maxInDoubt is how many jobs of a classic queue a new leader fires again at most.
const maxInDoubt = 256
