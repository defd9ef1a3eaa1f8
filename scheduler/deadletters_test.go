package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A message without x-death and timestamp, such as one that a client sent to jobs.dead, gets the
// time at which it was taken over. If it is taken over twice, it is still recognized.
func TestDeadLetterWithoutMetadata(t *testing.T) {
	s, err := newModelSidecar(newModelBroker(), "a")
	require.NoError(t, err)
	defer s.store.Close()
	known := func(d wire.Delivery) bool {
		known, err := (&Scheduler{services: &services{entries: s.entries.Reader}}).isBuried(d)
		require.NoError(t, err)
		return known
	}
	taken := time.Now()
	d := wire.Delivery{Body: []byte(`{"jid":"a","class":"C"}`), Redelivered: true}
	record, _, err := deadRecord(d, taken)
	require.NoError(t, err)
	e, err := wire.ParseEntry(wire.DeadJobs, 0, record)
	require.NoError(t, err)
	require.WithinDuration(t, taken, e.At, time.Microsecond)

	first := d // a letter that was in two queues is not marked as redelivered in either
	first.Redelivered = false
	require.False(t, known(d))
	s.broker.append(wire.DeadJobs, millrace, wire.Message{Body: record})
	require.NoError(t, s.readAll())
	require.True(t, known(d))
	require.True(t, known(first))
	other := wire.Delivery{Body: []byte(`{"jid":"a","class":"D"}`), Redelivered: true}
	require.False(t, known(other))

	for stamp, want := range map[int64]int64{1_700_000_000: 1_700_000_000, 1 << 50: taken.Unix()} {
		stamped, _, err := deadRecord(wire.Delivery{Body: d.Body, Timestamp: time.Unix(stamp, 0)}, taken)
		require.NoError(t, err)
		e, err = wire.ParseEntry(wire.DeadJobs, 0, stamped)
		require.NoError(t, err)
		require.Equal(t, want, e.At.Unix())
	}
}
