package scheduler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func (sc *scene) operate(s *modelSidecar, id string, op wire.Operation) wire.Reply {
	return sc.ask(s, wire.Command{ID: id, Command: wire.CommandOperate, Bulk: &op})
}

// What cannot be done to one of an operation's entries is counted, with the last reason; the others go on.
func TestOperationsCountWhatFails(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 3 {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.at("twin", "q", sc.now.Add(day))
	sc.at("twin", "q", sc.now.Add(2*day))
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{"j-0", "nobody", "twin", "j-1"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	sc.rounds(s, 20, nil)
	got, known := s.entries.Operation("op")
	require.True(t, known)
	require.Equal(t, []any{wire.OperationDone, int64(2), int64(2)}, []any{got.State, got.Done, got.Failed})
	require.Contains(t, got.LastError, "2 entries have the jid twin")
	require.EqualValues(t, 3, s.entries.Total(wire.ScheduledJobs))
	require.Equal(t, wire.StatusConflict, sc.ask(s, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: "op"}}).Status)

	sc.broker.full["q"] = true
	op = wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "refused", op).Status)
	sc.rounds(s, 20, nil)
	got, _ = s.entries.Operation("refused")
	require.Equal(t, int64(3), got.Failed)
	require.Contains(t, got.LastError, "refused the job")
	require.EqualValues(t, 3, s.entries.Total(wire.ScheduledJobs), "all are pending as before")
}

// An operation that makes no sense is refused, and no more than some run at once.
func TestOperationsThatAreRefused(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, wire.StatusBad, sc.operate(s, "bad", wire.Operation{Action: "dance"}).Status)
	for i := range 300 {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	slow := wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}, Rate: 0.001}
	for i := range maxOperations {
		require.Equal(t, wire.StatusAccepted, sc.operate(s, fmt.Sprint("op-", i), slow).Status)
	}
	reply := sc.operate(s, "one too many", slow)
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "operations are running")
	require.Less(t, reply.Status, 500)
}

// What was undone already, or happened since, cannot be undone.
func TestUndoOfWhatHappenedSince(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("j", sc.now.Add(day), "")
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.DeadJobs, JID: "j"}).Status)
	cmd.Command = wire.CommandUndo
	reply := sc.ask(s, cmd)
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "not there any more")
}
