package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func (sc *scene) claim(s *modelSidecar, slot, process string) string {
	sc.t.Helper()
	reply := sc.ask(s, wire.Command{Command: wire.CommandClaim, Slot: slot, Process: process})
	require.Equal(sc.t, wire.StatusOK, reply.Status)
	return reply.Claim
}

// newestSlot returns the slot of the newest job in a queue.
func (sc *scene) newestSlot() string {
	return sc.broker.copies[len(sc.broker.copies)-1].headers.Slot
}

func TestNewestFireRuns(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.limited(s, "before", "q")
	sc.reportEnd(sc.newestSlot())
	sc.rounds(s, 2, nil)

	sc.gated("j", "q")
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now)) // fires it
	for len(s.conn.out) > 0 {
		sc.broker.process(s.conn, sc.now)
	}
	first := sc.newestSlot()

	var answers []string
	cmd := wire.Command{Command: wire.CommandClaim, Slot: first, Process: "w1"}
	require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { answers = append(answers, r.Claim) }))
	for range 3 {
		for len(s.conn.out) > 0 {
			sc.broker.process(s.conn, sc.now)
		}
		require.NoError(t, s.readAll())
		require.NoError(t, s.step(sc.now))
	}
	require.Empty(t, answers, "the broker has not confirmed it, and may lose it")

	s.disconnect()
	sc.broker.witness = "" // the broker has restarted
	b := sc.leader("b")
	again := sc.newestSlot()
	require.NotEqual(t, first, again, "it was fired again")
	require.Equal(t, wire.ClaimDrop, sc.claim(b, first, "w1"))
	require.Equal(t, wire.ClaimRun, sc.claim(b, again, "w2"))
	require.Equal(t, wire.ClaimRun, sc.claim(b, again, "w3"), "the broker gave the job to another worker")
	sc.reportEnd(again)
	require.Equal(t, wire.ClaimDrop, sc.claim(b, again, "w4"), "the job has ended")

	b.disconnect()
	c := sc.leader("c")
	require.Equal(t, wire.ClaimDrop, sc.claim(c, again, "w4"), "the next leader knows it too")
	require.Equal(t, wire.StatusBad, sc.ask(c, wire.Command{Command: wire.CommandFree, Slot: "x"}).Status)
}

// One record is enough for all claims that come before it. A later one has a record of its own.
func TestClaimsShareARecord(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.limited(s, "j", "q")
	slot := sc.newestSlot()
	var answers []string
	claim := func(process string) {
		cmd := wire.Command{Command: wire.CommandClaim, Slot: slot, Process: process}
		require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { answers = append(answers, r.Claim) }))
	}
	records := func() int { return len(sc.broker.streams[wire.JobEnds].records) }
	before := records()
	for _, process := range []string{"w1", "w2", "w3"} {
		claim(process)
	}
	require.NoError(t, s.step(sc.now))
	claim("w4")
	sc.rounds(s, 6, nil)
	require.Equal(t, []string{wire.ClaimRun, wire.ClaimRun, wire.ClaimRun, wire.ClaimRun}, answers)
	require.Equal(t, before+2, records())
}

// reportEnd has a worker report the end of a job.
func (sc *scene) reportEnd(slot string) {
	sc.t.Helper()
	end, err := wire.End{Type: wire.TypeEnded, Slot: slot}.Message()
	require.NoError(sc.t, err)
	sc.broker.append(wire.JobEnds, "client", end)
}

// A worker has the message of a fire that the queue refused. The job waits to be fired again.
func TestJobThatWaitsIsDropped(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.limited(s, "j", "q")
	slot, err := wire.ParseSlot(sc.newestSlot())
	require.NoError(t, err)
	sc.broker.full["q"] = true
	offset := sc.gated("k", "q")
	sc.rounds(s, 2, nil)
	refused := wire.Slot{Stream: wire.Gated, Offset: offset, Epoch: slot.Epoch, Seq: slot.Seq, JIDTag: "k"}
	require.Equal(t, wire.ClaimDrop, sc.claim(s, refused.String(), "w1"))
	gone := wire.Slot{Stream: wire.Gated, Offset: 1 << 20, Epoch: slot.Epoch, Seq: slot.Seq, JIDTag: "l"}
	require.Equal(t, wire.ClaimRun, sc.claim(s, gone.String(), "w1"), "its slot was freed, and the job is there")
}
