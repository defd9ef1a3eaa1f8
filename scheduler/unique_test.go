package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// unique appends a unique job with the key k.
func (sc *scene) unique(jid, more string) {
	body := fmt.Sprintf(`{"jid":%q,"class":"U","queue":"q","gate":{"unique":{"key":"k"%s}}}`, jid, more)
	sc.broker.append(wire.Gated, "client", wire.Message{Key: wire.Gated, Body: []byte(body)})
}

// endsJob appends the end of the newest fire of a job.
func (sc *scene) endsJob(jid string) {
	for i := len(sc.broker.copies) - 1; i >= 0; i-- {
		if c := sc.broker.copies[i]; c.headers.JIDTag == jid {
			m, err := wire.End{Type: wire.TypeEnded, Slot: c.headers.Slot}.Message()
			require.NoError(sc.t, err)
			sc.broker.append(wire.JobEnds, "client", m)
			return
		}
	}
}

// The view reads a decision before the broker confirms it.
func TestUniqueJobFiresWhenDecisionIsConfirmedLate(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.unique("u", "")
	decided := false
	for range 20 { // the confirms come a round late
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(t, s.readAll())
		require.NoError(t, s.step(sc.now))
		for len(s.conn.answers) > 0 {
			require.NoError(t, s.answer(sc.now))
		}
		for len(s.conn.out) > 0 {
			sc.broker.process(s.conn, sc.now)
		}
		decided = decided || sc.journaled()[wire.TypeDecided] > 0
	}
	require.True(t, decided)
	require.Equal(t, map[string]int{"u": 1}, sc.copies())
}

// A worker writes a retry, and then that the job has ended. The view reads the second first.
func TestKeyIsTakenWhileItsRetryIsUnread(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.unique("u", "")
	sc.rounds(s, 6, nil)
	require.Equal(t, map[string]int{"u": 1}, sc.copies())
	sc.broker.append(wire.Retries, "client", wire.Message{Body: fmt.Appendf(nil, `{"jid":"u","retry_at":%d,"job":{"jid":"u","class":"U","queue":"q","gate":{"unique":{"key":"k"}}}}`, sc.now.Add(day).Unix())})
	sc.endsJob("u")
	sc.unique("v", "")
	for range 3 {
		require.NoError(t, s.read(wire.JobEnds, 1000))
		require.NoError(t, s.read(wire.Gated, 1000))
		require.NoError(t, s.step(sc.now))
	}
	require.Equal(t, 1, sc.journaled()[wire.TypeDecided], "it is not known whether the key is free")
	sc.rounds(s, 6, nil)
	require.Equal(t, map[string]int{"u": 1}, sc.copies(), "v is a duplicate")
	h, err := s.entries.LastOutcome(wire.Gated, "v")
	require.NoError(t, err)
	require.Equal(t, []string{wire.UniqueDuplicate, "u"}, []string{h.What, h.Other})
}

// Jobs that are put off are due after the newest of them, and not after the end of max.
func TestUniqueJobsArePutOff(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		runs    string        // which job runs
		after   time.Duration // the first came
	}{
		"debounce":            {`,"on":"replace","wait":2`, "u3", 5 * time.Second},
		"debounce with a max": {`,"on":"replace","wait":2,"max":4`, "u3", 4 * time.Second},
		"extend":              {`,"wait":2`, "u0", 5 * time.Second},
		"extend with a max":   {`,"wait":2,"max":3`, "u0", 3 * time.Second},
		"throttle":            {`,"for":100`, "u0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			began := sc.now
			for n := range 4 { // one a second, if the first still waits
				sc.unique(fmt.Sprint("u", n), c.options)
				sc.rounds(s, 5, nil)
			}
			sc.rounds(s, 30, nil)
			require.Equal(t, map[string]int{c.runs: 1}, sc.copies())
			took := sc.broker.copies[0].at.Sub(began)
			require.GreaterOrEqual(t, took, c.after)
			require.Less(t, took, c.after+1500*time.Millisecond)
		})
	}
}

// Jobs that are for later replace each other, and keep their keys through a carry-over.
func TestUniqueJobForLaterIsCarriedOver(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	due := sc.now.Add(20 * time.Second)
	body := fmt.Sprintf(`{"jid":"u","class":"U","queue":"q","gate":{"at":%d,"unique":{"key":"k","for":5}}}`, due.Unix())
	sc.broker.append(wire.Gated, "client", wire.Message{Key: wire.Gated, Body: []byte(body)})
	sc.rounds(s, 5, nil)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 40, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	sc.unique("v", "")
	sc.rounds(s, 5, nil)
	require.Empty(t, sc.copies())
	fresh, err := newModelSidecar(sc.broker, "fresh")
	require.NoError(t, err)
	t.Cleanup(func() { _ = fresh.store.Close() })
	require.NoError(t, fresh.readAll())
	holds, err := fresh.entries.Unique.Holds(wire.UniqueKey("k").Hash())
	require.NoError(t, err)
	require.Len(t, holds, 1)
	sc.now = due
	sc.rounds(s, 6, nil)
	require.Equal(t, map[string]int{"u": 1}, sc.copies())
}

// A user frees a key that is taken for a time. A key that a job has is not freed.
func TestKeyIsFreedByHand(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.unique("u", `,"for":1000`)
	sc.rounds(s, 6, nil)
	cmd := wire.Command{Command: wire.CommandFreeKey, Key: wire.UniqueKey("k").Hash()}
	sc.endsJob("u")
	sc.rounds(s, 3, nil)
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status)
	sc.unique("v", "")
	sc.rounds(s, 6, nil)
	require.Equal(t, map[string]int{"u": 1, "v": 1}, sc.copies())
	require.Equal(t, wire.StatusConflict, sc.ask(s, cmd).Status)
}
