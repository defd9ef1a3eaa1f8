package millrace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func (m *metrics) addSome(n int) {
	now := time.Now()
	for i := range n {
		m.add(&RawJob{JID: fmt.Sprint(i), Class: "C", Queue: "q", Attempt: 1}, now, now, outcome{status: "success"})
	}
}

// sentMetrics are the sizes of the arrays in the stream.
func sentMetrics(t *testing.T, v *brokertest.Vhost) (sizes []int) {
	t.Helper()
	for _, d := range v.ReadStream(t, wire.JobMetrics) {
		require.NoError(t, wire.CheckMetrics(d.Body))
		sizes = append(sizes, len(gjson.ParseBytes(d.Body).Array()))
	}
	return sizes
}

// Metrics hold up nobody: what there is no room for is counted and dropped.
func TestMetricsAreDropped(t *testing.T) {
	m := newMetrics("me")
	m.addSome(metricsKept + 3)
	require.EqualValues(t, 3, m.dropped.Load())
	require.Len(t, m.records, metricsKept)
	require.Empty(t, m.drain(nil), "a worker that ends does not wait for a connection")
	require.EqualValues(t, metricsKept+3, m.dropped.Load())
}

// Without a connection metrics wait for the next, and none is lost. A worker that ends meanwhile is not held up.
func TestMetricsWaitForAConnection(t *testing.T) {
	t.Parallel()
	v := vhost(t)
	m := newMetrics("me")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.run()
	}()
	lost := v.Channel(t)
	require.NoError(t, lost.Close())
	m.attach(&session{tell: lost})
	m.addSome(metricsAtOnce)
	brokertest.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.session == nil
	}, "that connection is not used again")
	m.flush()
	require.Zero(t, m.dropped.Load())

	m.attach(&session{tell: v.Channel(t)})
	brokertest.Eventually(t, func() bool { return len(sentMetrics(t, v)) == 1 }, "they are sent")
	m.addSome(metricsAtOnce + 1)
	m.flush()
	brokertest.Eventually(t, func() bool { return len(sentMetrics(t, v)) == 3 }, "so is what was added before a flush")
	require.ElementsMatch(t, []int{metricsAtOnce, metricsAtOnce, 1}, sentMetrics(t, v))
	require.Zero(t, m.dropped.Load())

	m.attach(&session{tell: lost})
	m.addSome(metricsAtOnce)
	brokertest.Eventually(t, func() bool { return len(m.records) == 0 }, "they are in hand")
	m.close()
	<-ended
	m.flush() // nobody is there any more: it returns
}
