package scheduler

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A leader that lost its connection journals on the next one that it has ended, and the confirms
// that it knows, once.
func TestLastWordsAreJournaledOnNextConnection(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.prepare(t.Context(), conn))
	sc := newScene(t)
	model := sc.leader("a")
	sc.at("j", "q", sc.now)
	require.NoError(t, model.readAll())
	require.NoError(t, model.step(sc.now))
	sc.answer(model)
	s.remember(model.core, false)
	s.knownBy = "a"
	s.sayLastWords(t.Context(), conn, s.takeLastWords())
	require.Nil(t, s.takeLastWords(), "it has said so")
	records := v.ReadStream(t, wire.Journal)
	require.Len(t, records, 1)
	r, err := wire.ParseJournal(records[0].Body)
	require.NoError(t, err)
	require.Equal(t, wire.TypeConfirmed, r.Type)
	require.True(t, r.Ended)
	require.Equal(t, "a", r.Identity)
	require.Equal(t, wire.Through{Epoch: model.core.ledger.Epoch(), Through: model.core.ledger.Watermark()}, wire.Through{Epoch: r.Epoch, Through: r.Through})
	require.Positive(t, r.Through)

	s.unsaid.Store(true)
	broken, cancel := context.WithCancel(t.Context())
	cancel()
	s.sayLastWords(broken, conn, s.takeLastWords())
	require.NotNil(t, s.takeLastWords(), "they are left to the next connection")

	s.remember(model.core, false)
	s.knownAt-- // the view was rolled back since that epoch began, and the newest epoch is another sidecar's
	s.knownBy = "b"
	require.Nil(t, s.takeLastWords(), "another epoch may have the same number")
}

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
	for name, known := range map[string]wire.Confirmed{ // by how much its epoch is above the one that leads
		"of a journal that is gone":             {Epoch: 5, Through: 1},
		"of an epoch that the journal has lost": {Epoch: 0, Through: 100},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			before := s.entries.State()
			known.Epoch += before.Epoch
			sc.broker.append(wire.Journal, millrace, lastWords(time.Time{}, &known, "b").Append(wire.Journal, 0, 0))
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
