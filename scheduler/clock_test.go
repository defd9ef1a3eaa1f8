package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// TestClockSetBackDelaysNoRetry has a queue refuse a job, and then sets the clock back by an hour.
// The job is tried again as soon as without that.
func TestClockSetBackDelaysNoRetry(t *testing.T) {
	b := newModelBroker()
	s, err := newModelSidecar(b, "s")
	require.NoError(t, err)
	defer func() { _ = s.store.Close() }()
	now := time.Unix(1_800_000_000, 0)
	require.NoError(t, s.elect(func(string) bool { return false }))
	round := func() {
		require.NoError(t, s.step(now))
		for len(s.conn.out) > 0 {
			b.process(s.conn, now)
		}
		for len(s.conn.answers) > 0 {
			require.NoError(t, s.answer(now))
		}
		require.NoError(t, s.readAll())
	}
	for s.core.phase != phaseLeading {
		round()
	}
	b.full["q"] = true
	now = now.Add(2 * time.Hour)
	b.append(wire.Retries, "client", wire.Message{Body: []byte(`{"jid":"j","retry_at":1,"retry_count":1,"job":{"class":"C","queue":"q"}}`)})
	for range 5 {
		round()
	}
	require.NotEmpty(t, s.core.queues.heldQueues(), "the queue is held")
	require.Empty(t, b.copies)
	b.full["q"] = false
	require.NoError(t, s.core.beginCarry(0))
	s.core.carry.run.again = now.Add(time.Second)
	b.deaf = 1
	require.NoError(t, s.core.ledger.Append(wire.Journal, wire.JournalRecord{Type: wire.TypeConfirmed}, nil))
	b.process(s.conn, now)
	require.NoError(t, s.answer(now))
	require.Equal(t, 1, s.core.ledger.Refused())
	now = now.Add(-time.Hour)
	round()
	require.Empty(t, b.copies, "it is too early")
	for range 5 {
		now = now.Add(time.Second)
		round()
	}
	require.Len(t, b.copies, 1)
	require.Nil(t, s.core.carry.run, "it was carried over")
	require.Zero(t, s.core.ledger.Refused(), "it was published again")
}
