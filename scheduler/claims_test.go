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

func TestFireThatWasClaimedFirstRuns(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.limited(s, "j", "q")
	first, err := wire.ParseSlot(sc.broker.copies[len(sc.broker.copies)-1].headers.Slot)
	require.NoError(t, err)
	again := first
	again.Epoch, again.Seq = first.Epoch+1, 9
	require.Equal(t, wire.ClaimRun, sc.claim(s, again.String(), "w1"), "whichever comes first")
	require.Equal(t, wire.ClaimDrop, sc.claim(s, first.String(), "w2"))
	require.Equal(t, wire.ClaimRun, sc.claim(s, again.String(), "w3"), "the broker gave the job to another worker")

	end, err := wire.End{Type: wire.TypeEnded, Slot: again.String()}.Message()
	require.NoError(t, err)
	sc.broker.append(wire.JobEnds, "client", end)
	require.Equal(t, wire.ClaimDrop, sc.claim(s, again.String(), "w4"), "the job has ended")

	s.disconnect()
	b := sc.leader("b")
	require.Equal(t, wire.ClaimDrop, sc.claim(b, again.String(), "w4"), "the next leader knows it too")
	require.Equal(t, wire.StatusBad, sc.ask(b, wire.Command{Command: wire.CommandFree, Slot: "x"}).Status)
}
