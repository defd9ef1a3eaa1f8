package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// attemptsOf returns the attempts of a class that a sidecar has counted.
func (s *sidecar) attemptsOf(class string) []int64 {
	s.t.Helper()
	a, err := s.Ask(metrics.Query{Class: class, From: now.Add(-30 * 24 * time.Hour), To: now.Add(time.Hour)})
	require.NoError(s.t, err)
	return a.All.Attempts
}

// requireAttempts compares the attempts of the only class, A in the queue q.
func (s *sidecar) requireAttempts(want []int64, message string) {
	s.t.Helper()
	require.Equal(s.t, want, s.attemptsOf("A"), message)
	require.NoError(s.t, s.AllTime(func(_, _ string, sum metrics.Sum, _ map[string]int64) {
		require.Equal(s.t, want, sum.Attempts, message)
	}))
}

func TestAttemptsOfEndedJobsAreCounted(t *testing.T) {
	var s stream
	add := func(status, more string) { s.add(metric(now, "A", "q", status, time.Second, more)) }
	add("success", `,"attempt":1`)
	add("success", `,"attempt":1`)
	add("failed", `,"attempt":1`)
	add("failed", `,"attempt":2`)
	add("success", `,"attempt":3`)
	add("discarded", `,"attempt":2`)
	add("expired", `,"attempt":1`)
	add("success", "")
	add("success", `,"attempt":0`)
	c := newSidecar(t)
	c.read(wire.JobMetrics, s.records...)
	c.requireAttempts([]int64{2, 1, 1}, "failed and expired jobs do not count, nor do two without an attempt")
	s.records = nil
	add("dead", `,"attempt":26`)
	add("dead", `,"attempt":100`)
	add("dead", `,"attempt":101`)
	add("dead", `,"attempt":9007199254740992`)
	c.read(wire.JobMetrics, s.records...)
	c.restart()
	c.read(wire.JobMetrics, s.records...) // records that were not written are read again
	want := make([]int64, 100)
	want[0], want[1], want[2], want[25], want[99] = 2, 1, 1, 1, 3
	c.requireAttempts(want, "")
}

func TestClassWithoutAttempts(t *testing.T) {
	var s stream
	s.add(metric(now, "A", "q", "success", time.Second, ""))
	c := newSidecar(t)
	c.read(wire.JobMetrics, s.records...)
	c.requireAttempts([]int64{}, "")
}

// ended is a record of the property test.
type ended struct {
	status  string
	attempt int
	back    int // minutes
}

func (e *ended) body() string {
	return metric(now.Add(-time.Duration(e.back)*time.Minute), "A", "q", e.status, time.Second, fmt.Sprintf(`,"attempt":%d`, e.attempt))
}

// counted returns the attempts of all records, counted one by one.
func counted(all []ended) []int64 {
	want := []int64{}
	for _, e := range all {
		if e.attempt == 0 || e.status == "failed" || e.status == "expired" {
			continue
		}
		for len(want) < min(e.attempt, 100) {
			want = append(want, 0)
		}
		want[min(e.attempt, 100)-1]++
	}
	return want
}

// A sidecar counts the same from records, from roll-ups, and from both.
func TestRollUpsHaveAttemptsOfRecords(t *testing.T) {
	record := rapid.Custom(func(t *rapid.T) ended {
		return ended{rapid.SampledFrom(wire.MetricStatuses).Draw(t, "status"), rapid.IntRange(0, 110).Draw(t, "attempt"), rapid.IntRange(0, 3*24*60).Draw(t, "back")}
	})
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(record, 1, 40).Draw(rt, "records")
		var s stream
		for i := range all {
			s.add(all[i].body())
		}
		live := begin(t, rt)
		live.readInBatches(rt, s.records)
		live.requireAttempts(counted(all), "read one by one")

		rollups := live.roll(0)
		fresh := begin(t, rt)
		fresh.read(wire.Rollups, rollups[:rapid.IntRange(0, len(rollups)).Draw(rt, "roll-ups")]...)
		fresh.readInBatches(rt, s.records[fresh.Progress().Through:])
		fresh.requireAttempts(counted(all), "read from roll-ups, and from the records after them")
	})
}

// begin returns a sidecar for one run of a property.
func begin(t *testing.T, rt *rapid.T) *sidecar {
	dir, err := os.MkdirTemp(t.TempDir(), "")
	require.NoError(rt, err)
	s := &sidecar{t: t, now: now, dir: dir}
	s.open()
	rt.Cleanup(func() { require.NoError(t, s.store.Close()) })
	return s
}

func (s *sidecar) readInBatches(rt *rapid.T, records []wire.Record) {
	for len(records) > 0 {
		n := rapid.IntRange(1, len(records)).Draw(rt, "batch")
		s.read(wire.JobMetrics, records[:n]...)
		records = records[n:]
		s.now = s.now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
	}
}

// Roll-ups without attempts count the runs. Later roll-ups add attempts.
func TestRollUpsWithoutAttempts(t *testing.T) {
	live, raw, rollups := rolled(t, 5)
	old := newSidecar(t)
	half := len(rollups) / 2
	for _, r := range rollups[:half] {
		r.Body = withoutAttempts(t, r.Body)
		old.read(wire.Rollups, r)
	}
	require.Positive(t, old.count())
	require.Empty(t, old.attemptsOf("C1"))
	old.read(wire.Rollups, rollups[half:]...)
	old.read(wire.JobMetrics, raw.records[old.Progress().Through:]...)
	require.EqualValues(t, 600, old.count())
	some, all := old.attemptsOf("C1"), live.attemptsOf("C1")
	require.Positive(t, some[0])
	require.Less(t, some[0], all[0])
}

func withoutAttempts(t *testing.T, body []byte) []byte {
	t.Helper()
	var r wire.Rollup
	require.NoError(t, json.Unmarshal(body, &r))
	for i := range r.Rows {
		r.Rows[i].Attempts = nil
	}
	without, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(without), "attempts")
	require.NotEqual(t, string(body), string(without))
	return without
}
