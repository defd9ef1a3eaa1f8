package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// rolled returns a sidecar with some days of records, and their roll-ups.
func rolled(t *testing.T, seed uint64) (*sidecar, *stream, []wire.Record) {
	r := rand.New(rand.NewPCG(seed, 3))
	var s stream
	s.traffic(r, 600, now.Add(-20*24*time.Hour), 20*24*time.Hour)
	c := newSidecar(t)
	c.readAll(r, s.records)
	return c, &s, c.roll(0)
}

func (s *sidecar) start(last int64) (from int64, known bool) {
	s.t.Helper()
	require.NoError(s.t, s.store.Update(func(tx *view.Tx) (err error) {
		from, known, err = s.Start(tx, wire.JobMetrics, last)
		return err
	}))
	return from, known
}

func (s *sidecar) count() int64 {
	s.t.Helper()
	_, ever, err := s.Totals(now)
	require.NoError(s.t, err)
	return ever.Count()
}

func TestRecordsCoveredByRollUpsAreNotRead(t *testing.T) {
	_, all, rollups := rolled(t, 1)
	c := newSidecar(t)
	from, known := c.start(599)
	require.True(t, known)
	require.EqualValues(t, -1, from, "there are no roll-ups, so all records are read")
	c.read(wire.Rollups, rollups...)
	from, known = c.start(599)
	require.True(t, known)
	require.Equal(t, c.Progress().Through, from)
	require.Less(t, int64(500), from)
	c.read(wire.JobMetrics, all.records...)
	require.EqualValues(t, 600, c.count(), "covered records that are still read do not count")
}

func TestRecreatedStreamAddsToSums(t *testing.T) {
	live, _, rollups := rolled(t, 2)
	live.read(wire.Rollups, rollups...)
	require.NoError(t, live.store.Update(func(tx *view.Tx) error {
		_, err := live.all.Forget(tx, wire.JobMetrics)
		return err
	}))
	require.EqualValues(t, 1, live.Progress().Generation)
	require.EqualValues(t, 600, live.count(), "the counts stay")
	var recreated stream
	recreated.traffic(rand.New(rand.NewPCG(9, 9)), 100, now.Add(-5*24*time.Hour), 5*24*time.Hour)
	live.read(wire.JobMetrics, recreated.records...)
	require.EqualValues(t, 700, live.count())
	more := live.roll(int64(len(rollups)))
	require.NotEmpty(t, more)

	fresh := newSidecar(t) // it has the old stream's roll-ups, and the new stream ends before them
	fresh.read(wire.Rollups, rollups...)
	from, known := fresh.start(99)
	require.True(t, known)
	require.EqualValues(t, -1, from)
	fresh.read(wire.JobMetrics, recreated.records...)
	fresh.read(wire.Rollups, more...)
	require.Empty(t, fresh.rewound)
	require.Equal(t, live.Progress().Generation, fresh.Progress().Generation)

	late := newSidecar(t) // it counts the new stream as the old one
	late.read(wire.JobMetrics, recreated.records...)
	late.read(wire.Rollups, more...)
	require.Equal(t, []string{wire.JobMetrics, wire.Rollups}, late.rewound, "the sidecar starts over")
	require.Zero(t, late.count())
	late.read(wire.Rollups, append(rollups, more...)...)
	late.read(wire.Rollups, rollups...) // repeated by an old leader
	late.read(wire.JobMetrics, recreated.records...)
	_, ever, err := late.Totals(now)
	require.NoError(t, err)
	require.Equal(t, fresh.count(), ever.Count())

	require.NoError(t, live.store.Update(func(tx *view.Tx) error { return live.Forget(tx, wire.Rollups) }))
	require.EqualValues(t, 700, live.count())
}

// A view whose segments do not match the roll-ups starts over, and matches them after that.
func TestMismatchedViewStartsOver(t *testing.T) {
	live, all, rollups := rolled(t, 3)
	other := newSidecar(t)
	other.read(wire.JobMetrics, all.records[37:]...) // retention has deleted the first records
	other.read(wire.Rollups, rollups[:3]...)
	require.Equal(t, []string{wire.JobMetrics, wire.Rollups}, other.rewound)
	other.read(wire.Rollups, rollups...)
	other.read(wire.JobMetrics, all.records[37:]...)
	require.Len(t, other.rewound, 2)
	live.read(wire.Rollups, rollups...)
	requireSame(t, live.answers(), other.answers(), "")
	require.Equal(t, live.Progress(), other.Progress())

	from, known := other.start(600) // records were lost, so there is no position
	require.False(t, known, "roll-ups are read first")
	require.EqualValues(t, -1, from)
	require.Zero(t, other.count())
}

func TestForgedRollUpsAreRejected(t *testing.T) {
	_, _, rollups := rolled(t, 4)
	c := newSidecar(t)
	forged := rollups[0]
	forged.UserID = "guest"
	c.read(wire.Rollups, forged)
	bad := func(body string) {
		c.read(wire.Rollups, wire.Record{Stream: wire.Rollups, Offset: 9, UserID: user, Body: []byte(body)})
	}
	bad(`{"type":"rollup","from":1,"to":1}`)
	bad(`{"type":"deploy"}`)
	bad(`{"type":"x"}`)
	bad(`{"type":"rollup","to":1,"rows":[{"minute":61}]}`)
	bad(`{"type":"rollup","to":1,"rows":[{"minute":60},{"minute":60}]}`)
	bad(`{"type":"rollup","to":1,"rows":[{"minute":60,"run":"AAAA"}]}`)
	bad(`{"type":"rollup","to":"1"}`)
	bad(`x`)
	require.EqualValues(t, 9, c.all.State().Rejected[wire.Rollups])
	require.Zero(t, c.count())
	m, err := wire.Rollup{Type: wire.TypeRollup, To: 1}.Message(now)
	require.NoError(t, err)
	newer := wire.Record{Stream: wire.Rollups, Offset: 10, UserID: user, Body: []byte(`{"type":"rollup","format":99,"to":1}`)}
	err = c.store.Apply(c.all, wire.Rollups, []wire.Record{newer}, func() error { return nil }, func([]string) {})
	require.ErrorIs(t, err, view.ErrHalt)
	require.NotEmpty(t, m.Body)
}

func TestNamesAreBounded(t *testing.T) {
	var s stream
	for i := range 1100 {
		s.add(metric(now, fmt.Sprintf("C%04d", i), "q", "failed", time.Second, fmt.Sprintf(`,"error_class":"E%d"`, i)))
	}
	for i := range 30 {
		s.add(metric(now, "C0000", "q", "dead", time.Second, fmt.Sprintf(`,"error_class":"E%d"`, i)))
	}
	s.add(metric(now, longName(), "q", "success", time.Second, ""))
	live := newSidecar(t)
	live.readAll(rand.New(rand.NewPCG(1, 1)), s.records)
	a, err := live.Ask(metrics.Query{From: now, To: now.Add(time.Minute)})
	require.NoError(t, err)
	require.Len(t, a.Classes, 1001)
	require.EqualValues(t, 1131, a.All.Count())
	var other metrics.Named
	for _, c := range a.Classes {
		if c.Other {
			other = c
		}
	}
	require.Equal(t, "other", other.Name)
	require.EqualValues(t, 101, other.Count())
	require.Equal(t, metrics.Failure{Class: "other", Error: "other", Count: 84}, a.Failures[0])
	names := 0
	require.NoError(t, live.AllTime(func(_, _ string, _ metrics.Sum, _ map[string]int64) { names++ }))
	require.Equal(t, 1001, names)

	again := newSidecar(t)
	again.read(wire.JobMetrics, s.records...)
	again.restart()
	again.read(wire.JobMetrics, s.records...)
	requireSame(t, live.answers(), again.answers(), "")
}

func longName() string { return strings.Repeat("x", 300) }

// Records of any user begin a bounded number of minutes, and roll-ups fit into a message.
func TestGarbageIsBounded(t *testing.T) {
	c := newSidecar(t)
	var s stream
	s.add(metric(now.Add(48*time.Hour), "A", "q", "success", 0, ""), metric(now.Add(-6*365*24*time.Hour), "A", "q", "success", 0, ""))
	for i := range 20_000 {
		at := now.Add(-time.Duration(i*7919%2_000_000) * time.Minute)
		s.add(metric(at, fmt.Sprintf("%200d", i), "q", "success", 1e5*time.Hour, `,"attempt":1000`))
	}
	c.read(wire.JobMetrics, s.records...)
	require.EqualValues(t, 2, c.all.State().Rejected[wire.JobMetrics])
	require.EqualValues(t, 20_000, c.count())
	segments, err := c.Segments(1000)
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	for _, p := range segments {
		m, err := p.Message(now)
		require.NoError(t, err)
		require.Less(t, len(m.Body), 4<<20)
		require.LessOrEqual(t, len(p.Rows), 9000)
	}
	some, err := c.Segments(1)
	require.NoError(t, err)
	require.Equal(t, segments[:1], some)
}

func TestOldSumsAreDeleted(t *testing.T) {
	c := newSidecar(t)
	var s stream
	for d := range 100 {
		s.add(metric(now.Add(-time.Duration(d)*24*time.Hour), "A", "q", "success", time.Second, ""))
	}
	c.read(wire.JobMetrics, s.records...)
	count := func(from time.Duration, step time.Duration) int64 {
		a, err := c.Ask(metrics.Query{From: c.now.Add(-from), To: c.now.Add(time.Minute), Step: step})
		require.NoError(t, err)
		return a.All.Count()
	}
	require.EqualValues(t, 100, count(120*24*time.Hour, 24*time.Hour))
	require.EqualValues(t, 91, count(120*24*time.Hour, 2*time.Hour), "hours are kept for 90 days")
	require.EqualValues(t, 4, count(100*time.Hour, 5*time.Minute), "minutes are kept for 72 hours")
	c.now = c.now.Add(30 * 24 * time.Hour)
	s.records[99].Offset = 100
	c.read(wire.JobMetrics, s.records[99])
	kept := map[byte]int{}
	require.NoError(t, c.store.Scan([]byte("Ma"), []byte("Mz"), false, func(key, _ []byte) bool { kept[key[1]]++; return true }))
	require.Equal(t, []int{100, 61, 0}, []int{kept['d'], kept['h'], kept['m']})
}

func TestInvalidQueriesAreRefused(t *testing.T) {
	c := newSidecar(t)
	for _, q := range []struct {
		metrics.Query
		want error
	}{
		{metrics.Query{From: now, To: now.Add(-time.Second)}, metrics.ErrRange},
		{metrics.Query{From: now.Add(-time.Hour), To: now, Step: time.Second}, metrics.ErrStep},
		{metrics.Query{From: now.Add(-time.Hour), To: now, Step: 90 * time.Second}, metrics.ErrStep},
		{metrics.Query{From: now.Add(-72 * time.Hour), To: now, Step: time.Minute}, metrics.ErrPoints},
	} {
		_, err := c.Ask(q.Query)
		require.ErrorIs(t, err, q.want)
	}
	a, err := c.Ask(metrics.Query{From: time.Time{}, To: time.Time{}.Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, a.Older)
	require.Zero(t, a.All.Count())
}

func TestDamageIsReported(t *testing.T) {
	for _, key := range []string{"Ms", "Me\x80\x00\x00\x00\x00\x00\x00\x00\x01Aq", "Mo\x80\x00\x00\x00\x00\x00\x00\x00\x01Aq"} {
		c := newSidecar(t)
		require.NoError(t, c.store.Update(func(tx *view.Tx) error { return tx.Set([]byte(key), []byte{1}) }))
		_, err := metrics.New(c.store, nil, user)
		require.ErrorContains(t, err, "damaged", "%q", key)
	}
	c := newSidecar(t)
	require.NoError(t, c.store.Update(func(tx *view.Tx) error {
		return tx.Set([]byte("Mp\x80\x00\x00\x00\x00\x00\x00\x00"), []byte("{"))
	}))
	_, err := c.Segments(1)
	require.Error(t, err)
	require.NoError(t, c.store.Update(func(tx *view.Tx) error {
		return tx.Set([]byte("MD\x80\x00\x00\x00\x00\x00\x00\x01"), []byte("{"))
	}))
	_, err = c.Deploys(time.Unix(0, 0), now)
	require.Error(t, err)
}

// Sums of very long run times do not overflow.
func TestRunTimesDoNotOverflow(t *testing.T) {
	c := newSidecar(t)
	var s stream
	for range 20_000 {
		s.add(`{"timestamp":` + fmt.Sprint(now.Unix()) + `,"job_class":"A","status":"success","duration_ms":1e12}`)
	}
	c.read(wire.JobMetrics, s.records...)
	require.NoError(t, c.AllTime(func(_, _ string, sum metrics.Sum, _ map[string]int64) {
		require.Positive(t, sum.Total)
		require.Positive(t, sum.Run.Sum)
	}))
}
