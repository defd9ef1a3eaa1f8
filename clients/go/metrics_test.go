package millrace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (m *metrics) addSome(n int) {
	now := time.Now()
	for i := range n {
		m.add(&RawJob{JID: fmt.Sprint(i), Class: "C", Queue: "q", Attempt: 1}, now, now, outcome{status: "success"})
	}
}

// Metrics never block. A record for which there is no room is counted and dropped.
func TestMetricsAreDropped(t *testing.T) {
	m := newMetrics("me")
	m.addSome(metricsKept + 3)
	require.EqualValues(t, 3, m.dropped.Load())
	require.Len(t, m.records, metricsKept)
	require.Empty(t, m.drain(nil), "a worker that ends does not wait for a connection")
	require.EqualValues(t, metricsKept+3, m.dropped.Load())
}

// A worker that ends without a connection does not wait for metrics that it cannot send.
func TestMetricsOfEndingWorker(t *testing.T) {
	t.Parallel()
	m := newMetrics("me")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.run()
	}()
	m.addSome(metricsAtOnce)
	require.Eventually(t, func() bool { return len(m.records) == 0 }, time.Minute, time.Millisecond, "they are in hand")
	m.close()
	<-ended
	m.flush() // run has ended, and flush returns
}
