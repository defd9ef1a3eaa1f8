package scheduler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// worker is a plain consumer, as any client can be. It counts jobs by jid.
type worker struct {
	mu   sync.Mutex
	seen map[string]int
}

// work declares a queue as clients do and consumes it. After a broker restart it is called again
// with the same worker.
func work(t *testing.T, v *brokertest.Vhost, queue string, w *worker) *worker {
	t.Helper()
	if w == nil {
		w = &worker{seen: map[string]int{}}
	}
	ch := v.Channel(t)
	_, err := ch.QueueDeclare(wire.QueuePrefix+queue, true, false, false, false, amqp.Table{"x-max-priority": int32(10)})
	require.NoError(t, err)
	jobs, err := ch.Consume(wire.QueuePrefix+queue, "", false, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range jobs {
			w.mu.Lock()
			w.seen[gjson.GetBytes(d.Body, "jid").String()]++
			w.mu.Unlock()
			_ = d.Ack(false) // a broker that dies before it gets this delivers the job again
		}
	}()
	return w
}

func (w *worker) times(jid string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[jid]
}

func (w *worker) distinct() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

func (w *worker) hasAll(jids []string) bool {
	return !slices.ContainsFunc(jids, func(jid string) bool { return w.times(jid) == 0 })
}

// gets waits until each of some jobs has come, and requires that it came once.
func (w *worker) gets(t *testing.T, jids ...string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return w.hasAll(jids) }, "%v come", jids)
	for _, jid := range jids {
		require.Equal(t, 1, w.times(jid), "%s came more than once", jid)
	}
}

// schedule publishes one due entry for each jid.
func schedule(t *testing.T, v *brokertest.Vhost, at time.Time, queue string, jids ...string) {
	t.Helper()
	messages := make([]amqp.Publishing, len(jids))
	for i, jid := range jids {
		messages[i] = scheduled(jid, at, job("C", queue))
	}
	v.Publish(t, "", wire.ScheduledJobs, messages...)
}

// names returns n jids.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return all
}

// policy sets an operator's policy, which takes precedence over Millrace's own.
func policy(t *testing.T, v *brokertest.Vhost, name, pattern, kind string, definition map[string]any) {
	t.Helper()
	v.Do(t, http.MethodPut, "/api/policies/"+v.Name+"/"+name,
		map[string]any{"pattern": pattern, "definition": definition, "priority": 100, "apply-to": kind}, nil)
}

// journal counts the records of the journal by type, and fires and burials by op.
func journal(t *testing.T, v *brokertest.Vhost) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, d := range v.ReadStream(t, wire.Journal) {
		if headers, ok := wire.DispatchOf(d.Headers); ok {
			found[headers.Op]++
		} else if r, err := wire.ParseJournal(d.Body); err == nil {
			found[r.Type]++
		}
	}
	return found
}

// offsetOf returns where an entry stands in its stream.
func offsetOf(t *testing.T, v *brokertest.Vhost, stream, jid string) int64 {
	t.Helper()
	for _, d := range slices.Backward(v.ReadStream(t, stream)) {
		if gjson.GetBytes(d.Body, "jid").String() == jid {
			return brokertest.Offset(d)
		}
	}
	require.FailNow(t, "no such entry", "%s in %s", jid, stream)
	return -1
}

// mortal is a leader whose steps the test makes, so that it can die between any two.
type mortal struct {
	t     *testing.T
	v     *brokertest.Vhost
	conn  *broker.Conn
	pub   *broker.Publisher
	epoch int64
	seq   int64
}

// reign has a leader open an epoch, up to its witness.
func reign(t *testing.T, v *brokertest.Vhost) *mortal {
	t.Helper()
	m := &mortal{t: t, v: v}
	ctx := t.Context()
	var err error
	m.conn, err = broker.Dial(ctx, broker.Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.conn.Close() })
	_, err = m.conn.AssertTopology(ctx)
	require.NoError(t, err)
	_, faults, err := broker.AssertWanted(ctx, broker.Config{AMQPURL: v.AMQPURL()}, false)
	require.NoError(t, err)
	require.Len(t, faults, 1, "jobs.direct is not there yet")
	require.NoError(t, m.conn.MakeWay(ctx))
	lock, err := m.conn.Lock(ctx)
	require.NoError(t, err)
	m.pub = lock.Publisher
	m.append(wire.Journal, wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "mortal"})
	records := v.ReadStream(t, wire.Journal)
	m.epoch = brokertest.Offset(records[len(records)-1])
	for _, stream := range wire.EntryStreams {
		m.append(stream, wire.JournalRecord{Type: wire.TypeBarrier})
	}
	witness := wire.WitnessPrefix + "mortal"
	require.NoError(t, m.conn.DeclareWitness(ctx, witness))
	m.append(wire.Journal, wire.JournalRecord{Type: wire.TypeWitness, Queue: witness})
	return m
}

func (m *mortal) append(stream string, r wire.JournalRecord) {
	m.t.Helper()
	r.Epoch = m.epoch
	if stream == wire.Journal && r.Type != wire.TypeOpened {
		m.seq++
	}
	require.NoError(m.t, m.pub.Send(m.t.Context(), r.Append(stream, m.seq, 0)))
}

// fire publishes an entry's job as a leader does, and returns the broker's answer. It journals
// nothing.
func (m *mortal) fire(exchange, jid, queue string) error {
	m.t.Helper()
	m.seq++
	headers := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: offsetOf(m.t, m.v, wire.ScheduledJobs, jid),
		JIDTag: jid, Epoch: m.epoch, Seq: m.seq}
	body := fmt.Appendf(nil, `{"class":"C","args":[1,"two"],"queue":%q,"retry":25,"jid":%q}`, queue, jid)
	msg := wire.Fire(&wire.Job{JID: jid, Class: "C", Queue: queue}, headers, body, time.Now())
	if msg.Exchange = exchange; exchange == "" {
		msg.Key = wire.Journal
	}
	return m.pub.Send(m.t.Context(), msg)
}

func (m *mortal) die() {
	m.t.Helper()
	require.NoError(m.t, m.conn.Close())
}

// ensure creates a job queue, bound as Millrace binds it.
func ensure(t *testing.T, v *brokertest.Vhost, queues ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	defer conn.Close()
	for _, q := range queues {
		require.NoError(t, conn.EnsureQueue(ctx, q))
	}
}
