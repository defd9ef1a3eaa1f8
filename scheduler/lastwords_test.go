package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A leader has the lock, and its record opened is on its way, while the lock passes on. The journal
// says that the leader before it has ended, so neither waits. Only the one with the lock leads.
func TestLeaderWithoutLockDoesNotBegin(t *testing.T) {
	sc := newScene(t)
	sc.broker.leases = true
	a, b, c := sc.leader("a"), sc.sidecar("b"), sc.sidecar("c")
	for _, s := range []*modelSidecar{a, b, c} {
		s.lease = newLease(func() time.Time { return sc.now })
	}
	a.disconnect()
	a.sayLastWords(sc.now)
	sc.elect(b, never)
	require.True(t, b.entries.State().Ended)
	b.ping()
	require.NoError(t, b.step(sc.now))
	b.conn.cut, sc.broker.conn = true, nil // RabbitMQ before 4.3 has lost sight of b's node
	require.NoError(t, c.readAll())
	require.True(t, c.entries.State().Ended)
	sc.elect(c, never)
	sc.rounds(c, 6, nil)
	require.Equal(t, phaseLeading, c.core.phase)

	b.conn.heal() // what it has sent arrives behind what c has done
	sc.take(b)
	for range 20 {
		sc.now = sc.now.Add(50 * time.Millisecond)
		require.True(t, b.mayAct())
		require.NoError(t, b.step(sc.now))
		sc.exchange(b)
		require.NoError(t, b.readAll())
	}
	require.Equal(t, b.core.ledger.Epoch(), b.entries.State().Epoch)
	require.Equal(t, phaseReconciled, b.core.phase)
}

// What a process says of an epoch does not count where another epoch may have its number.
func TestLastWordsOfAnotherEpochAreVoid(t *testing.T) {
	for name, last := range map[string]func(epoch int64) wire.JournalRecord{
		"of a journal that is gone": func(epoch int64) wire.JournalRecord {
			return lastWords(time.Time{}, &wire.Confirmed{Epoch: epoch + 5, Through: 1}, "b")
		},
		"of an epoch that the journal has lost": func(epoch int64) wire.JournalRecord {
			return lastWords(time.Time{}, &wire.Confirmed{Epoch: epoch, Through: 100}, "b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			before := s.entries.State()
			sc.broker.append(wire.Journal, millrace, last(before.Epoch).Append(wire.Journal, 0, 0))
			sc.rounds(s, 5, nil)
			state := s.entries.State()
			require.False(t, state.Ended)
			require.Equal(t, before.Epoch, state.Epoch)
			require.Equal(t, before.Identity, state.Identity)
			require.LessOrEqual(t, state.Confirmed, s.core.ledger.Watermark())
		})
	}
}

// That an epoch has ended is nothing that was done in it: its barriers may not have arrived.
func TestLastWordsAreNoActs(t *testing.T) {
	sc := newScene(t)
	s := sc.sidecar("a")
	sc.elect(s, never)
	for s.core.phase < phaseCatchingUp {
		require.NoError(t, s.step(sc.now))
		sc.take(s)
		sc.answer(s)
		require.NoError(t, s.read(wire.Journal, 1))
	}
	s.disconnect()
	s.sayLastWords(sc.now)
	require.NoError(t, s.readAll())
	require.True(t, s.entries.State().Ended)
	require.False(t, s.entries.State().Led)
}

// Only a ping that was sent since the epoch is in the journal shows that the sidecar has the lock.
func TestOldPingDoesNotProveLock(t *testing.T) {
	c := &candidate{lease: newLease(time.Now), pingNow: make(chan struct{}, 1)}
	old := c.lease.Send()
	require.False(t, c.stillHolds())
	require.NotEmpty(t, c.pingNow, "it asks for a ping")
	c.lease.Back(old)
	require.False(t, c.stillHolds())
	c.lease.Back(c.lease.Send())
	require.True(t, c.stillHolds())
	require.True(t, (&candidate{}).stillHolds(), "an exclusive lock ends with its connection")
}
