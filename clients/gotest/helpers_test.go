package gotest

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	. "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// vhost is a virtual host as a sidecar prepares it, with one job queue.
func vhost(t *testing.T, queues ...string) *brokertest.Vhost {
	t.Helper()
	v := brokertest.New(t)
	topology(t, v, queues...)
	return v
}

func topology(t *testing.T, v *brokertest.Vhost, queues ...string) {
	t.Helper()
	conn, err := broker.Dial(t.Context(), broker.Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.AssertTopology(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.MakeWay(t.Context()))
	_, faults, err := broker.AssertWanted(t.Context(), broker.Config{AMQPURL: v.AMQPURL()}, true)
	require.NoError(t, err)
	require.Empty(t, faults)
	ch := v.Channel(t)
	for _, q := range append(queues, wire.DefaultQueue) {
		_, err := ch.QueueDeclare("queue."+q, true, false, false, false, amqp.Table{"x-max-priority": 10})
		require.NoError(t, err)
		require.NoError(t, ch.QueueBind("queue."+q, q, wire.ExchangeDirect, false, nil))
	}
}

func client(t *testing.T, url string) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{URL: url})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// enqueue publishes a job whose arg is a text.
func enqueue(t *testing.T, v *brokertest.Vhost, class, text string, o *EnqueueOptions) string {
	t.Helper()
	jid, err := client(t, v.AMQPURL()).Enqueue(t.Context(), Args(class, text), o)
	require.NoError(t, err)
	return jid
}

// beatEvery is how often workers send heartbeats. Tests read them.
const beatEvery = 200 * time.Millisecond

// worker is a worker that logs to the test, unless it has a logger, and is stopped when the test
// ends.
type worker struct {
	*Worker
	said *said
	end  chan error
}

func newTestWorker(t *testing.T, cfg WorkerConfig) *worker {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	cfg.Heartbeat = beatEvery
	return &worker{Worker: NewWorker(cfg), said: &said{}, end: make(chan error, 1)}
}

func (w *worker) start(t *testing.T) {
	t.Helper()
	go func() { w.end <- w.Run(context.Background()) }()
	t.Cleanup(func() { w.stop(t) })
}

func (w *worker) stop(t *testing.T) {
	t.Helper()
	w.Stop()
	select {
	case err := <-w.end:
		require.NoError(t, err)
		w.end <- nil
	case <-time.After(40 * time.Second):
		require.FailNow(t, "the worker does not stop")
	}
}

// said has the actions of handlers, in order.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *said) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

func (s *said) has(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		brokertest.Eventually(t, func() bool {
			for _, l := range s.all() {
				if l == line {
					return true
				}
			}
			return false
		}, "%q is said, in %v", line, s.all())
	}
}

// says returns a handler that reports its arg and then does something.
func (w *worker) says(then func(ctx context.Context, text string) error) Handler {
	return Func1(func(ctx context.Context, text string) error {
		w.said.add(text)
		if then == nil {
			return nil
		}
		return then(ctx, text)
	})
}

// record waits for the record of a stream that is about a job.
func recordOf(t *testing.T, v *brokertest.Vhost, stream, jid string) gjson.Result {
	t.Helper()
	var found gjson.Result
	brokertest.Eventually(t, func() bool {
		for _, d := range v.ReadStream(t, stream) {
			if r := gjson.ParseBytes(d.Body); r.Get("jid").String() == jid {
				found = r
				return true
			}
		}
		return false
	}, "%s has a record of %s", stream, jid)
	_, err := wire.ParseEntry(stream, 1, []byte(found.Raw))
	require.NoError(t, err)
	return found
}

// metricOf waits for the last metric of a job.
func metricOf(t *testing.T, v *brokertest.Vhost, jid string) gjson.Result {
	t.Helper()
	var found gjson.Result
	brokertest.Eventually(t, func() bool {
		for _, d := range v.ReadStream(t, wire.JobMetrics) {
			require.NoError(t, wire.CheckMetrics(d.Body))
			for _, m := range gjson.ParseBytes(d.Body).Array() {
				if m.Get("jid").String() == jid {
					found = m
				}
			}
		}
		return found.Exists()
	}, "a metric of %s", jid)
	return found
}

// idle waits until a queue is empty and none of its jobs runs.
func (w *worker) idle(t *testing.T, v *brokertest.Vhost, queue string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue."+queue) == 0 }, "%s is empty", queue)
	brokertest.Eventually(t, func() bool { return w.busy(t, v) == 0 }, "%s is done", queue)
}

// busy waits for the next heartbeat, and returns how many jobs run then.
func (w *worker) busy(t *testing.T, v *brokertest.Vhost) int {
	t.Helper()
	now := time.Now()
	var beat wire.Heartbeat
	brokertest.Eventually(t, func() bool {
		beat = w.lastBeat(t, v)
		return beat.Beat.After(now)
	}, "a heartbeat after %s", now)
	return int(beat.Busy)
}

// lastBeat returns the last heartbeat of the worker.
func (w *worker) lastBeat(t *testing.T, v *brokertest.Vhost) (last wire.Heartbeat) {
	t.Helper()
	for _, d := range v.ReadStream(t, wire.Heartbeats) {
		beat, err := wire.ParseHeartbeat(d.Body)
		require.NoError(t, err)
		if beat.Identity == w.Identity() {
			last = beat
		}
	}
	return last
}

// dropped returns how many metrics the worker had dropped by its last heartbeat.
func (w *worker) dropped(t *testing.T, v *brokertest.Vhost) int64 {
	t.Helper()
	beats := v.ReadStream(t, wire.Heartbeats)
	require.NotEmpty(t, beats)
	return gjson.GetBytes(beats[len(beats)-1].Body, "metrics_dropped").Int()
}

// control publishes a command to workers.
func control(t *testing.T, v *brokertest.Vhost, c map[string]any) {
	t.Helper()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	v.Publish(t, wire.Control, "", amqp.Publishing{Body: text})
}

func consumers(t *testing.T, v *brokertest.Vhost, queue string) int {
	t.Helper()
	q, err := v.Channel(t).QueueDeclarePassive("queue."+queue, true, false, false, false, nil)
	require.NoError(t, err)
	return q.Consumers
}
