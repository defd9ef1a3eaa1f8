package queues_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m, goleak.IgnoreCurrent()) }

// world is a broker whose queues the test sets.
type world struct {
	t     *testing.T
	now   time.Time
	infos []broker.QueueInfo
	err   error
	asked int
	watch *queues.Watch
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(1_800_000_000, 0)}
	w.watch = queues.New(func() time.Time { return w.now })
	w.watch.From(func(context.Context) ([]broker.QueueInfo, []string, error) {
		w.asked++
		return w.infos, []string{"memory alarm"}, w.err
	}, true)
	return w
}

// look returns what Look reports about the only queue, after some time.
func (w *world) look(after time.Duration, info broker.QueueInfo) queues.Queue {
	w.t.Helper()
	w.now = w.now.Add(after)
	info.Name = "queue.a"
	w.infos = []broker.QueueInfo{info}
	w.watch.Forget()
	s, err := w.watch.Look(w.t.Context())
	require.NoError(w.t, err)
	require.Len(w.t, s.Queues, 1)
	return s.Queues[0]
}

func TestViewersShareOneRequest(t *testing.T) {
	w := newWorld(t)
	w.infos = []broker.QueueInfo{{Name: "queue.b"}, {Name: "queue.a"}, {Name: "mine"}, {Name: "queue.s", Type: "stream"}}
	var viewers sync.WaitGroup
	for range 100 {
		viewers.Go(func() {
			s, err := w.watch.Look(context.Background())
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, []string{s.Queues[0].Name, s.Queues[1].Name})
			require.Equal(t, []string{"memory alarm"}, s.Alarms)
			require.True(t, s.Rates)
		})
	}
	viewers.Wait()
	require.Equal(t, 1, w.asked)
	w.now = w.now.Add(4 * time.Second)
	_, err := w.watch.Look(t.Context())
	require.NoError(t, err)
	w.watch.Forget()
	_, err = w.watch.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, w.asked)
	w.err = errors.New("gone")
	w.now = w.now.Add(4 * time.Second)
	for range 2 {
		_, err = w.watch.Look(t.Context())
		require.ErrorIs(t, err, w.err)
	}
	require.Equal(t, 4, w.asked, "a broker that does not answer is asked once for all viewers")
	_, err = queues.New(nil).Look(t.Context())
	require.Error(t, err)
}

// A broker with many queues answers slowly. A viewer does not wait for it if there is a recent
// answer.
func TestViewersGetRecentAnswerDuringRequest(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	watch := queues.New(func() time.Time { return now })
	asked, answers := make(chan struct{}, 1), make(chan int64, 1)
	watch.From(func(ctx context.Context) ([]broker.QueueInfo, []string, error) {
		asked <- struct{}{}
		select {
		case ready := <-answers:
			return []broker.QueueInfo{{Name: "queue.a", Ready: ready}}, nil, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}, true)
	ready := func() int64 {
		s, err := watch.Look(t.Context())
		require.NoError(t, err)
		return s.Queues[0].Ready
	}
	answers <- 1
	require.EqualValues(t, 1, ready())
	<-asked
	now = now.Add(3 * time.Second)
	for range 3 {
		require.EqualValues(t, 1, ready(), "the answer is three seconds old")
	}
	<-asked // one request for all three
	watch.Forget()
	answers <- 2
	answers <- 3
	require.EqualValues(t, 3, ready(), "the answer to a request before Forget is not used")
	<-asked
	now = now.Add(4 * time.Second)
	given, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := watch.Look(given)
	require.ErrorIs(t, err, context.Canceled, "a viewer may stop waiting")
	<-asked
	answers <- 4
	require.EqualValues(t, 4, ready())
}

// A broker that answers slowly is asked less often.
func TestSlowBrokerIsAskedLessOften(t *testing.T) {
	now, asked := time.Unix(1_800_000_000, 0), make(chan struct{}, 9)
	watch := queues.New(func() time.Time { return now })
	watch.From(func(context.Context) ([]broker.QueueInfo, []string, error) {
		now = now.Add(3 * time.Second)
		asked <- struct{}{}
		return nil, nil, errors.New("too slow")
	}, true)
	look := func() {
		_, err := watch.Look(t.Context())
		require.EqualError(t, err, "too slow")
	}
	look()
	require.Len(t, asked, 1)
	now = now.Add(12*time.Second - 1)
	look()
	require.Len(t, asked, 1)
	now = now.Add(2*time.Second + 1)
	look()
	require.Len(t, asked, 2)
}

func TestOldestJob(t *testing.T) {
	w := newWorld(t)
	age := func(after time.Duration, info broker.QueueInfo, want time.Duration, exact bool) {
		t.Helper()
		q := w.look(after, info)
		require.Equal(t, want, q.Oldest)
		require.Equal(t, exact, q.Exact)
	}
	age(0, broker.QueueInfo{}, 0, true)
	age(10*time.Second, broker.QueueInfo{Ready: 3}, 10*time.Second, false) // the queue was empty before
	age(20*time.Second, broker.QueueInfo{Ready: 3}, 30*time.Second, false)
	age(5*time.Second, broker.QueueInfo{Ready: 2}, 0, false) // a job was taken
	age(5*time.Second, broker.QueueInfo{Ready: 2, DeliverRate: 1}, 0, false)
	age(5*time.Second, broker.QueueInfo{Ready: 9}, 5*time.Second, false)
	age(time.Minute, broker.QueueInfo{Ready: 9}, 0, false) // without a look in between, the queue may have been empty
	age(5*time.Second, broker.QueueInfo{Ready: 9, HeadTimestamp: w.now.Add(-time.Hour)}, time.Hour+5*time.Second, true)
	age(5*time.Second, broker.QueueInfo{Ready: 9, HeadTimestamp: w.now.Add(time.Hour)}, 10*time.Second, false) // a clock that is ahead
}

func TestGrowth(t *testing.T) {
	w := newWorld(t)
	var last queues.Queue
	for i := range 120 {
		last = w.look(10*time.Second, broker.QueueInfo{Ready: int64(i) * 50})
	}
	require.InDelta(t, 5, last.Growth, .01)
	require.Zero(t, w.look(time.Hour, broker.QueueInfo{Ready: 1}).Growth)
}

func TestRatesComeFromCounters(t *testing.T) {
	w := newWorld(t)
	at := func(after time.Duration, n int64) queues.Queue {
		t.Helper()
		return w.look(after, broker.QueueInfo{Published: 3 * n, Delivered: 2 * n, Acked: n, PublishRate: 77})
	}
	require.InDelta(t, 77, at(0, 100).PublishRate, 0, "without an earlier look, the broker's rate is used")
	require.InDelta(t, 77, at(2*time.Second, 100).PublishRate, 0)
	for i := range int64(30) {
		at(2*time.Second, 100+10*i)
	}
	q := at(2*time.Second, 400)
	require.InDeltaSlice(t, []float64{15, 10, 5}, []float64{q.PublishRate, q.DeliverRate, q.AckRate}, .01)
	for range 15 {
		q = at(2*time.Second, 400)
	}
	require.Zero(t, q.PublishRate, "no message was published lately")
	require.InDelta(t, 77, at(2*time.Second, 5).PublishRate, 0, "the broker's counter was reset")
	require.InDelta(t, 77, at(time.Hour, 500).PublishRate, 0, "the last look is too long ago")
	w = newWorld(t)
	for range 10 {
		require.InDelta(t, 77, at(2*time.Second, 0).PublishRate, 0, "the broker has no counters")
	}
}

func TestTakenJobResetsOldest(t *testing.T) {
	w := newWorld(t)
	look := func(after time.Duration, delivered int64) time.Duration {
		t.Helper()
		return w.look(after, broker.QueueInfo{Ready: 9, Delivered: delivered}).Oldest
	}
	look(0, 5)
	require.Equal(t, 5*time.Second, look(5*time.Second, 5))
	require.Zero(t, look(5*time.Second, 6), "jobs were taken, and others were published")
	require.Equal(t, 5*time.Second, look(5*time.Second, 6))
}

// The time without a taken job is reported only if the broker counts deliveries.
func TestUnserved(t *testing.T) {
	w := newWorld(t)
	for i, want := range []time.Duration{0, 20 * time.Second, 40 * time.Second, 0, 20 * time.Second} {
		delivered := int64(5)
		if i > 2 {
			delivered = 6
		}
		require.Equal(t, want, w.look(20*time.Second, broker.QueueInfo{Ready: 9, Delivered: delivered, HeadTimestamp: w.now.Add(-time.Hour)}).Unserved, i)
	}
	require.Zero(t, w.look(20*time.Second, broker.QueueInfo{Delivered: 6}).Unserved, "no job waits")
	w = newWorld(t)
	for range 3 {
		require.Zero(t, w.look(20*time.Second, broker.QueueInfo{Ready: 9}).Unserved, "the broker counts nothing")
	}
}

func TestRealBroker(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	cfg := broker.Config{AMQPURL: v.AMQPURL(), Name: t.Name()}
	conn, err := broker.Dial(t.Context(), cfg)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Topology().Assert(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Topology().EnsureRouting(t.Context()))
	require.NoError(t, conn.Queues().Ensure(t.Context(), "a"))
	p, err := conn.Publisher(t.Context())
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, p.Send(t.Context(), wire.Message{Key: "queue.a", Body: []byte("x")}))
	}
	mgmt, err := broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, nil)
	require.NoError(t, err)
	defer mgmt.Close()
	for _, source := range []queues.Source{queues.Managed(mgmt), queues.Declared(cfg, func() []string { return []string{"a", "missing"} })} {
		brokertest.Eventually(t, func() bool {
			w := queues.New(nil)
			w.From(source, true)
			s, err := w.Look(t.Context())
			require.NoError(t, err)
			require.Len(t, s.Queues, 1)
			return s.Queues[0].Name == "a" && s.Queues[0].Ready == 3
		}, "three jobs wait")
	}

	found, err := conn.Queues().Peek(t.Context(), "queue.a", 2)
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "x", string(found[0].Body))
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.a") == 3 }, "they are put back")
	dropped, err := conn.Queues().Purge(t.Context(), "queue.a")
	require.NoError(t, err)
	require.Equal(t, 3, dropped)
	found, err = conn.Queues().Peek(t.Context(), "queue.a", 2)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = conn.Queues().Purge(t.Context(), "queue.missing")
	var refusal *broker.QueueError
	require.ErrorAs(t, err, &refusal)
	_, _, err = queues.Declared(broker.Config{AMQPURL: "amqp://127.0.0.1:1/"}, nil)(t.Context())
	require.Error(t, err)
}
