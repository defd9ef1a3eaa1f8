package metrics_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const user = "millrace"

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// sidecar is a sidecar that folds metrics.
type sidecar struct {
	t     testing.TB
	dir   string
	store *view.Store
	all   *tracker.Entries
	*metrics.Metrics
	*metrics.Reader
	now     time.Time
	rewound []string
}

func newSidecar(t testing.TB) *sidecar {
	s := &sidecar{t: t, now: now, dir: t.TempDir()}
	s.open()
	t.Cleanup(func() { require.NoError(t, s.store.Close()) })
	return s
}

func (s *sidecar) open() {
	var err error
	s.store, err = view.Open(view.Config{Dir: s.dir, Identity: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	s.Metrics, err = metrics.New(s.store, func() time.Time { return s.now }, user)
	require.NoError(s.t, err)
	s.Reader = s.Metrics.Reader()
	s.all, err = tracker.NewEntries(s.store, user)
	require.NoError(s.t, err)
	s.all.Add(s.Metrics)
}

// restart stops the sidecar in order, and starts it again.
func (s *sidecar) restart() {
	require.NoError(s.t, s.store.Close())
	s.open()
}

// read folds some records in one batch.
func (s *sidecar) read(stream string, records ...wire.Record) {
	s.t.Helper()
	if len(records) == 0 {
		return
	}
	err := s.store.Apply(s.all, stream, records, func() error { return nil }, func(rewound []string) { s.rewound = append(s.rewound, rewound...) })
	require.NoError(s.t, err)
}

// readAll folds records in batches of any size, while time passes.
func (s *sidecar) readAll(r *rand.Rand, records []wire.Record) {
	s.t.Helper()
	for len(records) > 0 {
		n := 1 + r.IntN(min(len(records), 100))
		s.read(wire.JobMetrics, records[:n]...)
		records = records[n:]
		s.now = s.now.Add(time.Duration(r.IntN(400)) * time.Millisecond)
	}
}

// roll returns the roll-ups that a leader would publish, as records at offsets from first on.
func (s *sidecar) roll(first int64) []wire.Record {
	s.t.Helper()
	segments, err := s.Segments(1000)
	require.NoError(s.t, err)
	var all []wire.Record
	for i, p := range segments {
		m, err := p.Message(s.now)
		require.NoError(s.t, err)
		all = append(all, wire.Record{Stream: wire.Rollups, Offset: first + int64(i), UserID: user, Body: m.Body})
	}
	return all
}

// stream is job_metrics, with the records of workers.
type stream struct {
	records []wire.Record
	next    int64
}

func (s *stream) add(bodies ...string) {
	for _, body := range bodies {
		s.records = append(s.records, wire.Record{Stream: wire.JobMetrics, Offset: s.next, Body: []byte(body), Time: now})
		s.next++
	}
}

func metric(at time.Time, class, queue, status string, took time.Duration, more string) string {
	return fmt.Sprintf(`{"timestamp":%f,"job_class":%q,"queue":%q,"status":%q,"duration_ms":%f%s}`,
		wire.Seconds(at), class, queue, status, float64(took.Microseconds())/1000, more)
}

// traffic adds n records of a time, of which some are late.
func (s *stream) traffic(r *rand.Rand, n int, begin time.Time, length time.Duration) {
	status := []string{"success", "success", "success", "failed", "dead", "discarded", "expired"}
	attempt := []int{0, 1, 1, 2, 3, 7, 26, 150}
	for i := range n {
		at := begin.Add(length * time.Duration(i) / time.Duration(n)).Add(-time.Duration(r.IntN(90)) * time.Second)
		more := fmt.Sprintf(`,"wait_ms":%d,"attempt":%d,"error_class":"E%d"`, r.IntN(5000), attempt[r.IntN(len(attempt))], r.IntN(20))
		s.add(metric(at, fmt.Sprint("C", r.IntN(5)), fmt.Sprint("q", r.IntN(3)), status[r.IntN(len(status))], time.Duration(r.ExpFloat64()*float64(time.Second)), more))
	}
}

// answers returns all answers of a sidecar, as text.
func (s *sidecar) answers() string {
	s.t.Helper()
	var all []any
	for _, q := range []metrics.Query{
		{From: now.Add(-6 * time.Hour), To: now}, {From: now.Add(-70 * time.Hour), To: now, Step: time.Hour / 2}, {From: now.Add(-80 * 24 * time.Hour), To: now, Step: time.Hour * 2},
		{From: now.Add(-1000 * 24 * time.Hour), To: now.Add(24 * time.Hour)}, {From: now.Add(-48 * time.Hour), To: now, Class: "C1", Queue: "q1"},
	} {
		a, err := s.Ask(q)
		require.NoError(s.t, err)
		all = append(all, a)
		s.requireCounts(q, a)
	}
	today, ever, err := s.Totals(now)
	require.NoError(s.t, err)
	sums := map[string]metrics.Sum{}
	require.NoError(s.t, s.AllTime(func(class, queue string, sum metrics.Sum, _ map[string]int64) { sums[class+" "+queue] = sum }))
	raw, err := json.MarshalIndent(append(all, today, ever, sums), "", " ")
	require.NoError(s.t, err)
	return string(raw)
}

// requireSame compares answers; a difference is shown by its first line.
func requireSame(t *testing.T, want, have string, message string, args ...any) {
	t.Helper()
	w, h := strings.Split(want, "\n"), strings.Split(have, "\n")
	for i := range min(len(w), len(h)) {
		require.Equal(t, w[i], h[i], "line %d: %s", i, fmt.Sprintf(message, args...))
	}
	require.Len(t, h, len(w), message)
}

func TestSumsAddUpRecords(t *testing.T) {
	var s stream
	at := now.Add(-time.Minute)
	s.add(metric(at, "A", "x", "success", time.Second, `,"wait_ms":10`),
		metric(at, "A", "x", "failed", 3*time.Second, `,"error_class":"Timeout","wait_ms":10000,"attempt":2`),
		metric(at, "A", "y", "dead", 0, `,"error_class":"Timeout"`),
		`[`+metric(at, "B", "x", "discarded", time.Hour, "")+`,{"bad":1},`+metric(at.Add(-time.Hour), "B", "x", "expired", time.Hour, "")+`]`,
		`nonsense`)
	c := newSidecar(t)
	c.read(wire.JobMetrics, s.records...)
	a, err := c.Ask(metrics.Query{From: now.Add(-2 * time.Minute), To: now})
	require.NoError(t, err)
	require.Equal(t, metrics.Counts{Success: 1, Failed: 1, Dead: 1, Discarded: 1}, a.All.Counts)
	require.Equal(t, 4*time.Second, a.All.Total)
	require.Equal(t, 3*time.Second, a.All.Max)
	require.EqualValues(t, 3, a.All.Run.Count, "a job that did not run has no run time")
	require.EqualValues(t, 1, a.All.Wait.Count, "only first attempts have a wait time")
	require.Len(t, a.Points, 2)
	require.Zero(t, a.Points[0].Count())
	require.EqualValues(t, 4, a.Points[1].Count())
	require.Equal(t, []metrics.Failure{{Class: "A", Error: "Timeout", Count: 2}}, a.Failures)
	require.Equal(t, []string{"A", "B"}, []string{a.Classes[0].Name, a.Classes[1].Name})
	require.Equal(t, 4*time.Second, a.Classes[0].Total)

	one, err := c.Ask(metrics.Query{From: now.Add(-2 * time.Hour), To: now, Class: "B", Step: time.Hour})
	require.NoError(t, err)
	require.EqualValues(t, 2, one.All.Count())
	today, ever, err := c.Totals(now)
	require.NoError(t, err)
	require.Equal(t, today, ever)
	require.EqualValues(t, 3, ever.Processed())
	require.EqualValues(t, 2, ever.Failures())
	require.EqualValues(t, 5, ever.Count())

	var reasons []string
	require.NoError(t, c.all.Rejects(wire.JobMetrics, func(j tracker.Reject) bool { reasons = append(reasons, j.Reason+": "+string(j.Body)); return true }))
	require.Equal(t, []string{`record is not valid JSON: nonsense`, `metric record 1: member "job_class" is missing: [{"bad":1}]`}, reasons)
}

func TestPercentilesAreWithinOnePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var s stream
	var exact []time.Duration
	for range 20_000 {
		took := time.Duration(r.ExpFloat64() * float64(700*time.Millisecond)).Round(time.Microsecond)
		exact = append(exact, took)
		s.add(metric(now.Add(-time.Duration(1+r.IntN(3*3600))*time.Second), fmt.Sprint(r.IntN(7)), "q", "success", took, ""))
	}
	c := newSidecar(t)
	c.readAll(r, s.records)
	slices.Sort(exact)
	a, err := c.Ask(metrics.Query{From: now.Add(-6 * time.Hour), To: now})
	require.NoError(t, err)
	require.EqualValues(t, len(exact), a.All.Run.Count)
	for _, p := range []struct {
		at   float64
		have time.Duration
	}{{.5, a.All.Run.P50}, {.95, a.All.Run.P95}, {.99, a.All.Run.P99}} {
		require.InEpsilon(t, exact[int(p.at*float64(len(exact)-1))], p.have, .0101)
	}
	var n int64
	for i, in := range a.All.Run.Buckets {
		n += in
		if i < len(metrics.Bounds) {
			under, _ := slices.BinarySearch(exact, metrics.Bounds[i]+1)
			require.InDelta(t, under, n, float64(len(exact))*.01)
		}
	}
	require.EqualValues(t, len(exact), n)
}

// Each sidecar has the same answers, from records, from roll-ups, and from both.
func TestAnswersAreEqualOnEverySidecar(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s stream
		s.traffic(r, 500, now.Add(-30*24*time.Hour), 27*24*time.Hour)
		s.traffic(r, 1500, now.Add(-70*time.Hour), 70*time.Hour)
		live := newSidecar(t)
		var rollups []wire.Record
		for rest := s.records; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(600))
			live.readAll(r, rest[:n])
			rest = rest[n:]
			published := live.roll(int64(len(rollups)))
			rollups = append(rollups, published...)
			live.read(wire.Rollups, published...)
			if len(published) > 0 {
				live.read(wire.Rollups, published[r.IntN(len(published))]) // repeated by a leader that had not read it
			}
			if r.IntN(2) == 0 {
				live.restart()
				again := max(0, live.Progress().Through-50) // records that were not written are read again
				live.readAll(r, s.records[again:len(s.records)-len(rest)])
			}
		}
		want := live.answers()
		require.Greater(t, len(rollups), 20, "there is a segment for each day")
		require.Empty(t, live.rewound)

		fresh := newSidecar(t)
		k := r.IntN(len(rollups) + 1)
		for _, one := range rollups[:k] {
			fresh.read(wire.Rollups, one)
		}
		from := fresh.Progress().Through
		if k > 0 {
			require.Positive(t, from)
		}
		fresh.readAll(r, s.records[from:])
		requireSame(t, want, fresh.answers(), "seed %d", seed)
		require.Equal(t, live.Progress().Segment, fresh.Progress().Segment)

		for _, one := range rollups { // the roll-ups are late: the sidecar has counted the records
			fresh.read(wire.Rollups, one)
		}
		requireSame(t, want, fresh.answers(), "seed %d", seed)
		require.Empty(t, fresh.rewound, "the sidecar's segments match the roll-ups")
		require.Equal(t, live.Progress(), fresh.Progress())
		fresh.restart()
		fresh.readAll(r, s.records[len(s.records)-200:])
		requireSame(t, want, fresh.answers(), "seed %d", seed)

		slow := newSidecar(t) // it read some records before the roll-ups
		slow.readAll(r, s.records[:200])
		for _, one := range rollups {
			slow.read(wire.Rollups, one)
		}
		slow.readAll(r, s.records[200:])
		requireSame(t, want, slow.answers(), "seed %d", seed)
		require.Empty(t, slow.roll(0), "roll-ups that exist are not published again")
	}
}
