package processes_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world folds heartbeats, with a clock of its own.
type world struct {
	t      *testing.T
	store  *view.Store
	all    *processes.Processes
	now    time.Time
	offset int64
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(1_800_000_000, 0).UTC()}
	var err error
	w.store, err = view.Open(view.Config{Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.open()
	return w
}

// open starts a sidecar.
func (w *world) open() {
	var err error
	w.all, err = processes.Open(w.store, func() time.Time { return w.now })
	require.NoError(w.t, err)
}

func (w *world) fold(stored time.Time, body string) (reason string) {
	w.t.Helper()
	w.offset++
	require.NoError(w.t, w.store.Update(func(tx *view.Tx) (err error) {
		r := wire.Record{Stream: wire.Heartbeats, Offset: w.offset, Time: stored, Body: []byte(body)}
		reason, _, err = w.all.Fold(tx, &r)
		require.NoError(w.t, w.all.Commit(tx))
		return err
	}))
	return reason
}

// beat folds a heartbeat that is sent, stored and read now.
func (w *world) beat(identity string, more map[string]any) {
	w.t.Helper()
	require.Empty(w.t, w.fold(w.now, w.body(identity, more)))
}

func (w *world) body(identity string, more map[string]any) string {
	said := map[string]any{"identity": identity, "beat": wire.Seconds(w.now)}
	for k, v := range more {
		said[k] = v
	}
	body, err := json.Marshal(said)
	require.NoError(w.t, err)
	return string(body)
}

func (w *world) states() string {
	var all []string
	for _, p := range w.all.List() {
		all = append(all, p.Identity+" "+p.State)
	}
	return strings.Join(all, ", ")
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func TestStates(t *testing.T) {
	w := newWorld(t)
	w.beat("a", nil)
	w.beat("b", map[string]any{"state": "quiet"})
	w.beat("c", map[string]any{"state": "stopping"})
	require.Equal(t, "a live, b quiet, c stopping", w.states())
	w.pass(time.Minute)
	require.Equal(t, "a live, b quiet, c stopping", w.states())
	w.beat("a", nil)
	w.pass(time.Second)
	require.Equal(t, "a live, b lost", w.states(), "c has stopped")
	w.open()
	require.Equal(t, "a live, b lost", w.states(), "a restart changes nothing")
	w.pass(59 * time.Minute)
	require.Equal(t, "a lost", w.states())
	_, known := w.all.Get("b")
	require.False(t, known)
	a, known := w.all.Get("a")
	require.True(t, known)
	require.Equal(t, 59*time.Minute+time.Second, a.Silent)
	_, known = w.all.Get("unknown")
	require.False(t, known)
	w.beat("a", nil)
	require.Equal(t, "a live", w.states())
}

// Silence is measured with the broker's clock. The clocks of the worker and of this machine make no
// difference.
func TestClocksThatDiffer(t *testing.T) {
	for _, broker := range []time.Duration{-time.Hour, 0, time.Hour} {
		w := newWorld(t)
		beat := func(identity string) {
			w.fold(w.now.Add(broker), fmt.Sprintf(`{"identity":%q,"beat":1}`, identity))
		}
		beat("a")
		beat("b")
		w.pass(50 * time.Second)
		beat("a")
		w.pass(11 * time.Second)
		require.Equal(t, "a live, b lost", w.states(), "the broker's clock is ahead by %v", broker)
	}
}

// If the broker reports no times, a heartbeat counts from its arrival. Heartbeats of the past count
// from the time when they were sent.
func TestWithoutBrokersClock(t *testing.T) {
	w := newWorld(t)
	past := w.now.Add(-10 * time.Minute)
	for i := range 5 {
		at := past.Add(time.Duration(i) * 10 * time.Second)
		w.fold(time.Time{}, fmt.Sprintf(`{"identity":"gone","beat":%f}`, wire.Seconds(at)))
		w.fold(time.Time{}, fmt.Sprintf(`{"identity":"slow","beat":%f}`, wire.Seconds(at)))
	}
	w.fold(time.Time{}, fmt.Sprintf(`{"identity":"ahead","beat":%f}`, wire.Seconds(w.now.Add(time.Hour))))
	require.Equal(t, "ahead live, gone lost, slow lost", w.states())
	w.pass(10 * time.Second)
	w.fold(time.Time{}, fmt.Sprintf(`{"identity":"slow","beat":%f}`, wire.Seconds(past.Add(50*time.Second))))
	require.Equal(t, "ahead live, gone lost, slow live", w.states(), "the worker's clock is behind, but it sends heartbeats")
	w.pass(time.Minute + time.Second)
	require.Equal(t, "ahead lost, gone lost, slow lost", w.states())
}

func TestGarbageIsBounded(t *testing.T) {
	w := newWorld(t)
	require.Contains(t, w.fold(w.now, `{"identity":""}`), "identity")
	require.Contains(t, w.fold(w.now, `x`), "JSON")
	for i := range 10_050 {
		w.fold(w.now, fmt.Sprintf(`{"identity":"p%05d","beat":1}`, i))
	}
	require.Len(t, w.all.List(), 10_000)
	_, known := w.all.Get("p00049")
	require.False(t, known, "the oldest process is forgotten first")
	_, known = w.all.Get("p00050")
	require.True(t, known)
	w.open()
	require.Len(t, w.all.List(), 10_000)
	w.pass(time.Hour + time.Second)
	w.beat("new", nil)
	require.Equal(t, "new live", w.states())
	kept := 0
	require.NoError(t, w.store.Scan([]byte{'p'}, []byte{'q'}, false, func(_, _ []byte) bool { kept++; return true }))
	require.Equal(t, 1, kept, "the store has deleted them too")
}

func TestBytesAreBounded(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 250)
	work := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"jid":%q,"class":%q},`, long, long), 1000), ",")
	w.fold(w.now, `{"identity":"big","beat":1,"work":[`+work+`]}`)
	big, _ := w.all.Get("big")
	require.True(t, big.Cut)
	require.Empty(t, big.Work, "the running jobs are left out")

	some := strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"jid":%q,"class":%q},`, long, long), 400), ",")
	for i := range 400 {
		w.fold(w.now, fmt.Sprintf(`{"identity":"p%03d","beat":1,"work":[%s]}`, i, some))
	}
	require.Less(t, len(w.all.List()), 350)
	require.Greater(t, len(w.all.List()), 200)
}

func TestProcessesSurviveRecreatedStream(t *testing.T) {
	w := newWorld(t)
	w.beat("a", nil)
	require.NoError(t, w.store.Update(func(tx *view.Tx) error { return w.all.Forget(tx, wire.Heartbeats) }))
	require.Equal(t, "a live", w.states())
	require.Equal(t, []string{wire.Heartbeats}, w.all.Streams())
}

func TestDamageIsReported(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.store.Update(func(tx *view.Tx) error { return tx.Set([]byte("px"), []byte("{")) }))
	_, err := processes.Open(w.store, nil)
	require.ErrorContains(t, err, "damaged")
}

func TestSums(t *testing.T) {
	w := newWorld(t)
	w.beat("gone", map[string]any{"concurrency": 100, "queues": []string{"a"}, "tag": "x", "version": "0"})
	w.pass(2 * time.Minute)
	w.beat("a", map[string]any{"concurrency": 10, "busy": 2, "rss_kb": 5, "queues": []string{"queue.a", "b"}, "tag": "x", "version": "1",
		"work": []any{map[string]any{"queue": "a"}, map[string]any{"queue": "queue.b"}}})
	w.beat("b", map[string]any{"concurrency": 7, "busy": 1, "queues": []string{"b", "c"}, "tag": "x", "version": "2",
		"lanes": []any{map[string]any{"queues": []string{"b"}, "concurrency": 3}}})
	w.beat("c", map[string]any{"concurrency": 1, "queues": []string{"c"}, "tag": "y", "version": "1", "state": "quiet"})
	all := w.all.List()
	require.Equal(t, processes.Totals{Processes: 3, Concurrency: 18, Busy: 3, RSSKB: 5,
		States: map[string]int{"live": 2, "quiet": 1, "stopping": 0, "lost": 1}}, processes.Sum(all))
	require.Equal(t, map[string][]string{"x": {"1", "2"}}, processes.Skews(all))
	require.Equal(t, map[string]processes.Slots{"a": {1, 10, 1}, "b": {2, 13, 1}, "c": {1, 7, 0}}, processes.Serving(all))
}

func TestSaturatedQueues(t *testing.T) {
	w := newWorld(t)
	work := func(jobs ...any) []any { return jobs }
	job := func(class, queue string, ago float64) any {
		return map[string]any{"jid": class, "class": class, "queue": queue, "started_at": wire.Seconds(w.now) - ago}
	}
	full := func(beats ...map[string]any) map[string]processes.Full {
		t.Helper()
		w := newWorld(t)
		for i, b := range beats {
			w.beat(fmt.Sprint("p", i), b)
		}
		return processes.Saturated(w.all.List())
	}
	busy := map[string]any{"concurrency": 2, "busy": 2, "queues": []string{"queue.a", "b"}, "work": work(job("Old", "a", 90), job("New", "queue.b", 60))}
	both := processes.Full{Slots: 2, Class: "New", For: time.Minute}
	require.Equal(t, map[string]processes.Full{"a": both, "b": both}, full(busy))
	require.Equal(t, map[string]processes.Full{"a": both}, full(busy, map[string]any{"concurrency": 2, "busy": 1, "queues": []string{"b"}}), "b has a free slot elsewhere")
	require.Equal(t, map[string]processes.Full{"a": {Slots: 3, Class: "Third", For: 5 * time.Second}, "b": both},
		full(busy, map[string]any{"concurrency": 1, "busy": 1, "queues": []string{"a"}, "work": work(job("Third", "a", 5))}))
	require.Equal(t, map[string]processes.Full{"a": {Slots: 2}}, full(map[string]any{"concurrency": 2, "busy": 2, "queues": []string{"a"}, "work": work(job("Old", "a", 90))}),
		"the heartbeat describes only one of two jobs")
	require.Equal(t, map[string]processes.Full{"a": {Slots: 1, Class: "A", For: 7 * time.Second}}, full(map[string]any{"concurrency": 5, "busy": 2, "queues": []string{"a", "b"},
		"lanes": []any{map[string]any{"name": "one", "queues": []string{"queue.a"}, "concurrency": 1, "busy": 1}},
		"work":  work(job("A", "a", 7), job("B", "b", 1))}), "a lane has slots of its own")
	for name, b := range map[string]map[string]any{
		"idle":    {"concurrency": 1, "queues": []string{"a"}},
		"unknown": {"queues": []string{"a"}},
		"quiet":   {"concurrency": 1, "busy": 1, "queues": []string{"a"}, "state": "quiet"},
	} {
		require.Empty(t, full(b), name)
	}
}

// A job's run time is the difference of two times of the worker's clock, because that clock may be
// wrong.
func TestAgeOfJob(t *testing.T) {
	w := newWorld(t)
	w.beat("a", map[string]any{"beat": 1000, "work": []any{map[string]any{"started_at": 700}, map[string]any{}, map[string]any{"started_at": 2000}}})
	p, _ := w.all.Get("a")
	require.Equal(t, []time.Duration{5 * time.Minute, 0, 0}, []time.Duration{p.Age(&p.Work[0]), p.Age(&p.Work[1]), p.Age(&p.Work[2])})
}
