package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// application has messages delayed, and takes them from its own queues. It is a plain AMQP client.
type application struct {
	w      *world
	random *rand.Rand

	mu      sync.Mutex
	sent    map[string]published
	came    []time.Time
	changed []string // messages that arrived with another body or other properties
}

// published is a message as it must arrive.
type published struct {
	exchange, key string
	amqp.Publishing
}

// messageQueue is the queue of the jobs that are delayed messages.
const messageQueue = "millrace.messages"

// kinds are the types of the application's exchanges and of its queues.
var (
	exchangeKinds = []string{"direct", "topic"}
	queueKinds    = []string{"classic", "quorum"}
)

// newApplication declares exchanges and queues, each queue bound to each exchange, and consumes the
// queues until the test ends.
func newApplication(w *world) *application {
	w.t.Helper()
	a := &application{w: w, sent: map[string]published{}, random: rand.New(rand.NewPCG(w.random.Uint64(), 0))} //nolint:gosec // small
	ch := w.v.Channel(w.t)
	for _, kind := range exchangeKinds {
		require.NoError(w.t, ch.ExchangeDeclare("app."+kind, kind, true, false, false, false, nil))
	}
	for _, kind := range queueKinds {
		var arguments amqp.Table
		if kind == "quorum" && w.v.Features(w.t).QuorumQueues {
			arguments = amqp.Table{"x-queue-type": kind}
		}
		_, err := ch.QueueDeclare(kind, true, false, false, false, arguments)
		require.NoError(w.t, err)
		require.NoError(w.t, ch.QueueBind(kind, kind, "app.direct", false, nil))
		require.NoError(w.t, ch.QueueBind(kind, kind+".#", "app.topic", false, nil))
	}
	w.v.Sync(w.t)
	w.counter = newCounter()
	w.inBackground(func(ctx context.Context) {
		for ctx.Err() == nil {
			_ = a.consume(ctx) // the broker is killed
			w.pause(100 * time.Millisecond)
		}
	})
	return a
}

// inBackground runs a function until stop is called or the test ends.
func (w *world) inBackground(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	w.t.Cleanup(stop)
	return stop
}

// dial connects with heartbeats: the broker may be killed.
func (a *application) dial() (*amqp.Connection, error) {
	return amqp.DialConfig(a.w.v.AMQPURL(), amqp.Config{Dial: amqp.DefaultDial(2 * time.Second), Heartbeat: 10 * time.Second})
}

// consume counts messages until the connection is lost.
func (a *application) consume(ctx context.Context) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(500, 0, false); err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, kind := range queueKinds {
		deliveries, err := ch.Consume(kind, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		all.Go(func() {
			for d := range deliveries {
				a.take(d)
				_ = d.Ack(false) // fails with the channel
			}
		})
	}
	return nil
}

// take counts a message, and compares it with what was published.
func (a *application) take(d amqp.Delivery) {
	jid, _ := d.Headers["millrace-jid"].(string)
	for _, ofQueue := range []string{"x-delivery-count", "x-acquired-count"} { // a quorum queue adds them
		delete(d.Headers, ofQueue)
	}
	came := published{d.Exchange, d.RoutingKey, amqp.Publishing{
		ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode, Priority: d.Priority, CorrelationId: d.CorrelationId,
		ReplyTo: d.ReplyTo, Expiration: d.Expiration, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId, Headers: d.Headers, Body: d.Body,
	}}
	now := time.Now()
	a.mu.Lock()
	a.came = append(a.came, now)
	if !reflect.DeepEqual(came, a.sent[jid]) {
		a.changed = append(a.changed, fmt.Sprintf("%q: %+v", jid, came))
	}
	a.mu.Unlock()
	a.w.counter.arrive(jid, "-/-", d.Redelivered, now)
}

// since returns how many messages have arrived after a moment.
func (a *application) since(moment time.Time) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n < len(a.came) && a.came[len(a.came)-1-n].After(moment) {
		n++
	}
	return n
}

// next returns a message, and the record that has it delayed until a time.
func (a *application) next(jid string, due time.Time) (published, []byte) {
	exchange := exchangeKinds[a.random.IntN(len(exchangeKinds))]
	key := queueKinds[a.random.IntN(len(queueKinds))]
	if exchange == "topic" {
		key += ".a.b"
	}
	body := make([]byte, a.random.IntN(1000))
	for i := range body {
		body[i] = byte(a.random.IntN(256))
	}
	n := a.random.Int64()
	m := published{"app." + exchange, key, amqp.Publishing{
		ContentType: "application/octet-stream", DeliveryMode: amqp.Persistent, CorrelationId: "c-" + jid, Type: "t", Timestamp: time.Unix(due.Unix(), 0),
		Headers: amqp.Table{"n": n, "list": []any{"é", n}}, Body: body,
	}}
	message := map[string]any{"exchange": m.exchange, "routing_key": m.key, "body_base64": m.Body, "properties": map[string]any{
		"content_type": m.ContentType, "correlation_id": m.CorrelationId, "type": m.Type, "timestamp": due.Unix(), "headers": maps.Clone(m.Headers),
	}}
	m.Headers["millrace-jid"] = jid
	record, err := json.Marshal(map[string]any{"type": "scheduled_job", "jid": jid, "scheduled_at": due.Unix(),
		"job": map[string]any{"jid": jid, "class": "millrace.Message", "queue": messageQueue, "args": []any{message}}})
	require.NoError(a.w.t, err)
	return m, record
}

// produce has n messages delayed, at an even pace within span, each by a random time. They fall due
// at whole seconds, so that sidecars deliver many at the same time. done is closed at the end.
func (a *application) produce(n int, span, longest time.Duration) (done <-chan struct{}) {
	const pause = 200 * time.Millisecond
	ended, began := make(chan struct{}), time.Now()
	a.w.row.jobs = n
	a.w.inBackground(func(ctx context.Context) {
		defer close(ended)
		for sent := 0; sent < n && ctx.Err() == nil; a.w.pause(pause) {
			until := min(n, int(float64(n)*time.Since(began).Seconds()/span.Seconds()))
			if conn, err := a.dial(); err == nil {
				_ = a.publish(ctx, conn, sent, until, longest) // the broker is killed
				_ = conn.Close()
				sent = until
			}
		}
	})
	return ended
}

// publish has messages delayed. It never repeats one that the broker returned or did not confirm:
// that may arrive or not.
func (a *application) publish(ctx context.Context, conn *amqp.Connection, from, until int, longest time.Duration) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	returned := ch.NotifyReturn(make(chan amqp.Return, until-from+1))
	confirms := map[string]*amqp.DeferredConfirmation{}
	for i := from; i < until && err == nil; i++ {
		jid := fmt.Sprintf("message-%06d", i)
		due := time.Now().Add(time.Second + time.Duration(a.random.Int64N(int64(longest)))).Truncate(time.Second)
		m, record := a.next(jid, due)
		a.mu.Lock()
		a.sent[jid] = m
		a.mu.Unlock()
		a.w.open(jid, wire.ScheduledJobs, messageQueue, due, unknown)
		confirms[jid], err = ch.PublishWithDeferredConfirmWithContext(ctx, "", wire.ScheduledJobs, true, false,
			amqp.Publishing{DeliveryMode: amqp.Persistent, MessageId: jid, Body: record})
	}
	stored := map[string]bool{}
	for jid, c := range confirms {
		stored[jid] = c != nil && c.Wait()
	}
	for len(returned) > 0 { // a return comes before its confirm
		r := <-returned
		stored[r.MessageId] = false
	}
	for jid, is := range stored {
		if is {
			a.w.set(jid, comes, "")
		}
	}
	return err
}

// reckon checks that all messages arrived as they were published.
func (a *application) reckon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.w.must(len(a.changed) == 0, "%d messages arrived changed: %s", len(a.changed), strings.Join(first(a.changed), "\n"))
}
