package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func (sc *scene) operate(s *modelSidecar, id string, op wire.Operation) wire.Reply {
	return sc.ask(s, wire.Command{ID: id, Command: wire.CommandOperate, Bulk: &op})
}

// An operation counts the entries on which it fails, with the last reason. It continues with the
// others.
func TestOperationCountsFailures(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 3 {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.at("twin", "q", sc.now.Add(day))
	sc.at("twin", "q", sc.now.Add(2*day))
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{"j-0", "unknown", "twin", "j-1"}}
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

// An invalid operation is refused, and so is one too many at the same time.
func TestInvalidOperationsAreRefused(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, wire.StatusBad, sc.operate(s, "bad", wire.Operation{Action: "dance"}).Status)
	for i := range 300 {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.at("not named", "q", sc.now.Add(day))
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

// An entry that was already undone, or was acted upon since, cannot be undone.
func TestUndoAfterLaterActionIsRefused(t *testing.T) {
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

// ended waits for an operation's end.
func (sc *scene) ended(s *modelSidecar, id string) wire.Operation {
	sc.t.Helper()
	sc.rounds(s, 40, nil)
	op, known := s.entries.Operation(id)
	require.True(sc.t, known)
	require.Equal(sc.t, wire.OperationDone, op.State)
	return op
}

// An operation that is requested twice before any view has read the first request runs once.
func TestRepeatedOperationRunsOnce(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	cmd := wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: []string{"j"}}}
	var answers []int
	answer := func(r wire.Reply) { answers = append(answers, r.Status) }
	require.NoError(t, s.core.command(sc.now, cmd, answer))
	sc.broker.process(s.conn, sc.now)
	require.NoError(t, s.answer(sc.now))
	require.NoError(t, s.core.command(sc.now, cmd, answer))
	sc.rounds(s, 2, nil)
	require.Equal(t, []int{wire.StatusAccepted, wire.StatusAccepted}, answers)
	require.EqualValues(t, 1, sc.ended(s, "op").Done)
	require.Equal(t, 1, sc.journaled()[wire.OpTriggered])
}

// A command of a user about an entry comes first. The operation does what is left to do then.
func TestOperationsWaitForCommands(t *testing.T) {
	for name, op := range map[string]wire.Operation{
		"by filter": {Filter: &wire.Filter{}}, "by jid": {JIDs: []string{"first", "second"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			sc.at("first", "q", sc.now.Add(day))
			sc.at("second", "q", sc.now.Add(day))
			sc.rounds(s, 2, nil)
			op.Action, op.Stream = wire.CommandDelete, wire.ScheduledJobs
			require.NoError(t, s.core.command(sc.now, wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &op}, func(wire.Reply) {}))
			sc.broker.process(s.conn, sc.now)
			require.NoError(t, s.answer(sc.now))
			require.NoError(t, s.readAll())
			var reply wire.Reply
			trigger := wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "first"}
			require.NoError(t, s.core.command(sc.now, trigger, func(r wire.Reply) { reply = r }))
			for range 3 {
				require.NoError(t, s.step(sc.now))
			}
			out := slices.DeleteFunc(slices.Clone(s.conn.out), func(m sent) bool {
				_, probe := wire.ProbeOf(m.message.Headers)
				return probe
			})
			require.Len(t, out, 1, "nothing else is done before its result is known")
			got := sc.ended(s, "op")
			require.Equal(t, wire.StatusDone, reply.Status)
			require.Equal(t, map[string]int{"first": 1}, sc.copies())
			require.EqualValues(t, 1, got.Done)
			require.EqualValues(t, len(op.JIDs)/2, got.Failed, "a named entry that is gone counts as missing")
			require.Zero(t, s.entries.Total(wire.ScheduledJobs))
		})
	}
}

// An entry whose record cannot be read fails, and no other entry does.
func TestOperationOnUnreadableEntryFails(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.at("small", "q", sc.now.Add(day))
	large := sc.scheduled("large", sc.now.Add(day), `,"args":["`+strings.Repeat("x", 70<<10)+`"]`)
	sc.scheduled("larger", sc.now.Add(day), `,"args":["`+strings.Repeat("x", 80<<10)+`"]`)
	s.fetch = func(stream string, offset int64) ([]byte, error) {
		if offset == large {
			return nil, errors.New("no connection")
		}
		return sc.broker.streams[stream].get(offset).Body, nil
	}
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, Filter: &wire.Filter{Queue: "q"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	got := sc.ended(s, "op")
	require.Equal(t, []int64{2, 1}, []int64{got.Done, got.Failed})
	require.Contains(t, got.LastError, "could not be read")
	require.Equal(t, map[string]int{"small": 1, "larger": 1}, sc.copies())
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
}

// A repetition of the same publish is one entry with it, also in an operation.
func TestOperationTreatsRepeatAsOneEntry(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for range 3 {
		sc.at("j", "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: []string{"j"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	got := sc.ended(s, "op")
	require.Equal(t, []int64{1, 0}, []int64{got.Done, got.Failed})
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
	require.Equal(t, 2, sc.journaled()[wire.TypeDuplicate])
	require.Zero(t, s.entries.Total(wire.ScheduledJobs))
}

// spend is retention: it takes from each stream what low water has passed.
func (sc *scene) spend() {
	for _, stream := range sc.broker.streams {
		if n := min(stream.spent, stream.end()-1) - stream.base; n > 0 {
			stream.base, stream.records = stream.base+n, stream.records[n:]
		}
	}
}

// An operation that runs for longer than the journal's retention is written again, with what is
// left to do. A leader that knows nothing else continues there.
func TestOperationSurvivesJournalRetention(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	jids := []string{"j-0", "j-1", "j-2", "j-3"}
	for _, jid := range jids {
		sc.at(jid, "q", sc.now.Add(day))
	}
	sc.at("not named", "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	slow := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: jids, Rate: 0.1}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "slow", slow).Status)
	sc.rounds(s, 60, nil)
	require.Len(t, sc.copies(), 1, "as slow as requested")
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 15, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	s.lose()
	sc.spend()
	require.Zero(t, sc.journaled()[wire.TypeOperation], "the journal has forgotten its begin")

	fresh := sc.sidecar("fresh")
	sc.elect(fresh, never)
	sc.rounds(fresh, 300, nil)
	op := sc.ended(fresh, "slow")
	require.Equal(t, []int64{4, 4, 0}, []int64{op.Total, op.Done, op.Failed})
	copies := sc.copies()
	for _, jid := range jids {
		require.Equal(t, 1, copies[jid], jid)
	}
	require.Len(t, copies, len(jids))
	require.EqualValues(t, 1, fresh.entries.Total(wire.ScheduledJobs))
}

// A leader dies between the confirm of a burial and the record of the kill. The kill is then in
// doubt, although the journal has later confirms. The next leader journals the kill, so that it is
// part of its operation and can be undone.
func TestNextLeaderJournalsKillsOfOperation(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for _, jid := range []string{"one", "two", "three"} {
		sc.at(jid, "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: wire.CommandKill, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}}
	killed := 0
	diesAtTheSecond := func(m wire.Message) bool {
		j, err := wire.ParseJournal(m.Body)
		if err == nil && j.Type == wire.TypeKilled {
			killed++
		}
		return killed == 2
	}
	require.NoError(t, s.core.command(sc.now, wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &op}, func(wire.Reply) {}))
	for sc.journaled()[wire.OpBuried] < 3 { // none of which is confirmed
		require.NoError(t, s.step(sc.now))
		require.NoError(t, s.readAll())
		for len(s.conn.out) > 0 {
			sc.broker.process(s.conn, sc.now)
		}
		for len(s.conn.answers) > 0 && sc.journaled()[wire.OpBuried] == 0 {
			require.NoError(t, s.answer(sc.now))
		}
	}
	require.True(t, sc.rounds(s, 3, diesAtTheSecond))
	require.Equal(t, 1, sc.journaled()[wire.TypeKilled])
	s.lose()

	fresh := sc.leader("fresh")
	require.EqualValues(t, 3, sc.ended(fresh, "op").Done)
	require.Equal(t, 3, sc.journaled()[wire.TypeKilled])
	require.Equal(t, 3, sc.journaled()[wire.OpBuried], "each was buried once")
	require.Equal(t, wire.StatusAccepted, sc.undoAll(fresh, "undo", "op").Status)
	require.EqualValues(t, 3, sc.ended(fresh, "undo").Done)
	require.EqualValues(t, 3, fresh.entries.Total(wire.ScheduledJobs))
}

// Low water does not pass an operation that is not known to have ended.
func TestLowWaterWaitsForOperations(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	ends := func(m wire.Message) bool {
		j, err := wire.ParseJournal(m.Body)
		return err == nil && j.Type == wire.TypeOperation && j.Operation.State == wire.OperationDone
	}
	sc.broker.nacks = ends
	op := wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{"j"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	require.NoError(t, s.core.beginCarry(0))
	for i := range 20 { // all else is confirmed, as each fire says
		sc.due(fmt.Sprint("due-", i), "q")
		sc.rounds(s, 1, nil)
	}
	require.Zero(t, sc.journaled()[wire.TypeLowWater])
	sc.broker.nacks = nil
	require.EqualValues(t, 1, sc.ended(s, "op").Done)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
}

// An operation that fires entries has their queues created first. Entries of a queue that cannot be
// created stay pending, and are counted.
func TestOperationsWaitForQueues(t *testing.T) {
	for name, jids := range map[string][]string{"a filter": nil, "jids": {"j-0", "j-1", "other", "away-0", "away-1"}} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			s.core.setup.isBound = func(string) bool { return false }
			for i := range 2 {
				sc.at(fmt.Sprint("j-", i), "missing", sc.now.Add(day))
				sc.at(fmt.Sprint("away-", i), "away", sc.now.Add(day))
			}
			sc.at("other", "also missing", sc.now.Add(day))
			for _, queue := range []string{"missing", "also missing", "away"} {
				sc.broker.missing[queue] = true
			}
			sc.broker.away["away"] = true
			sc.rounds(s, 2, nil)
			op := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: jids}
			if jids == nil {
				op.Filter = &wire.Filter{}
			}
			require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
			sc.rounds(s, 20, nil)
			got, _ := s.entries.Operation("op")
			require.Equal(t, []any{wire.OperationDone, int64(3), int64(2)}, []any{got.State, got.Done, got.Failed})
			require.Contains(t, got.LastError, `queue "away" takes no job: its node is away: it is pending as before`)
			require.Equal(t, map[string]int{"j-0": 1, "j-1": 1, "other": 1}, sc.copies())
			require.Zero(t, s.entries.Total(wire.Gated), "none came back")
			require.EqualValues(t, 2, s.entries.Total(wire.ScheduledJobs))
		})
	}
}
