package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// requireCounts compares the answers that have only counts with the full answer.
func (s *sidecar) requireCounts(q metrics.Query, whole metrics.Answer) {
	s.t.Helper()
	in, err := s.Count(q)
	require.NoError(s.t, err)
	require.Equal(s.t, metrics.Counted{From: whole.From, To: whole.To, First: in.First, Counts: whole.All.Counts}, in)
	if !in.First.IsZero() {
		require.False(s.t, in.First.Before(whole.From) || !in.First.Before(whole.To), "the record is in the requested time")
	}

	t, err := s.Throughput(q)
	require.NoError(s.t, err)
	require.Equal(s.t, []any{whole.From, whole.To, whole.Step, whole.Older}, []any{t.From, t.To, t.Step, t.Older})
	ended := map[string]int64{}
	for _, queue := range whole.Queues {
		ended[queue.Name] = queue.Count()
	}
	series := make([]int64, len(whole.Points))
	require.Len(s.t, t.Queues, len(ended))
	for i, queue := range t.Queues {
		require.True(s.t, i == 0 || t.Queues[i-1].Name < queue.Name || queue.Other)
		for at, n := range queue.Counts {
			series[at] += n
			ended[queue.Name] -= n
		}
		require.Zero(s.t, ended[queue.Name], queue.Name)
	}
	for i, point := range whole.Points {
		require.Equal(s.t, point.Count(), series[i])
	}
}

func TestThroughputIsBounded(t *testing.T) {
	c := newSidecar(t)
	const names = 1500
	for day := range 2 { // each day has names of its own, within the limit
		var all stream
		all.next = int64(day * names)
		for i := range names / 2 {
			all.add(metric(now.AddDate(0, 0, -day), "A", fmt.Sprintf("q%04d", day*names/2+i), "success", time.Second, ""))
		}
		c.read(wire.JobMetrics, all.records...)
	}
	a, err := c.Throughput(metrics.Query{From: now.AddDate(0, 0, -1), To: now, Step: 24 * time.Hour})
	require.NoError(t, err)
	require.LessOrEqual(t, len(a.Queues), 1002)
	require.True(t, a.Queues[len(a.Queues)-1].Other)
	var ended int64
	for _, queue := range a.Queues {
		for _, n := range queue.Counts {
			ended += n
		}
	}
	require.EqualValues(t, names, ended)
	_, err = c.Throughput(metrics.Query{From: now, To: now, Step: time.Second})
	require.ErrorIs(t, err, metrics.ErrStep)
	_, err = c.Count(metrics.Query{From: now, To: now.Add(-time.Hour)})
	require.ErrorIs(t, err, metrics.ErrRange)
}
