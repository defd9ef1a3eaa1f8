package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func (sc *scene) undoAll(s *modelSidecar, id, undoes string) wire.Reply {
	return sc.operate(s, id, wire.Operation{Action: wire.CommandUndo, Undoes: undoes})
}

// done is a leader that has acted on all of some scheduled jobs.
func done(t *testing.T, action string, n int) (*scene, *modelSidecar) {
	t.Helper()
	sc := newScene(t)
	s := sc.leader("a")
	for i := range n {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.at("other", "elsewhere", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	op := wire.Operation{Action: action, Stream: wire.ScheduledJobs, Filter: &wire.Filter{Queue: "q"}}
	if action == wire.CommandChange {
		at := wire.Seconds(sc.now.Add(2 * day))
		op.At = &at
	}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "op", op).Status)
	require.EqualValues(t, n, sc.ended(s, "op").Done)
	return sc, s
}

func counts(op wire.Operation) []int64 { return []int64{op.Total, op.Done, op.Skipped(), op.Failed} }

// An operation is undone entry by entry: all that it acted on, and nothing else.
func TestUndoOfOperations(t *testing.T) {
	for _, action := range []string{wire.CommandDelete, wire.CommandKill, wire.CommandChange} {
		t.Run(action, func(t *testing.T) {
			sc, s := done(t, action, 5) // so many dead jobs are kept
			sc.scheduled("single", sc.now.Add(day), "")
			sc.rounds(s, 2, nil)
			require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "single"}).Status)
			require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
			sc.rounds(s, 60, nil)
			got := sc.ended(s, "undo")
			require.Equal(t, []int64{5, 5, 0, 0}, counts(got))
			require.EqualValues(t, 6, s.entries.Total(wire.ScheduledJobs))
			require.Zero(t, s.entries.Total(wire.DeadJobs))
			for i := range 5 {
				found, err := s.entries.Find(wire.ScheduledJobs, fmt.Sprint("j-", i))
				require.NoError(t, err)
				require.Len(t, found, 1)
				require.True(t, found[0].At.Before(sc.now.Add(day)), "as it was")
			}
			op, _ := s.entries.Operation("op")
			require.Equal(t, "undo", op.UndoneBy)
			reply := sc.undoAll(s, "again", "op")
			require.Equal(t, wire.StatusConflict, reply.Status)
			require.Contains(t, reply.Reason, "undo has undone it already")
			require.Equal(t, wire.StatusConflict, sc.undoAll(s, "undo the undo", "undo").Status)
		})
	}
}

func TestOperationsThatCannotBeUndone(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 3 {
		sc.at(fmt.Sprint("j-", i), "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	slow := wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}, Rate: 0.001}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "slow", slow).Status)
	reply := sc.undoAll(s, "undo", "slow")
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "cancel it first")
	require.Equal(t, wire.StatusNotFound, sc.undoAll(s, "undo", "never").Status)
	fired := wire.Operation{Action: wire.CommandTrigger, Stream: wire.ScheduledJobs, JIDs: []string{"j-0"}}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "fired", fired).Status)
	sc.rounds(s, 20, nil)
	reply = sc.undoAll(s, "undo", "fired")
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "what was delivered cannot be undone")
	for _, bad := range []wire.Operation{{Action: wire.CommandUndo}, {Action: wire.CommandUndo, Undoes: "slow", Filter: &wire.Filter{}}, {Action: wire.CommandUndo, Undoes: "slow", Rate: -1}} {
		require.Equal(t, wire.StatusBad, sc.operate(s, "bad", bad).Status)
	}
}

// A cancelled operation can be undone as far as it got. The rest of a cancelled undo can be undone
// too.
func TestUndoOfCancelledOperation(t *testing.T) {
	sc, s := done(t, wire.CommandDelete, 6)
	slow := wire.Operation{Action: wire.CommandUndo, Undoes: "op", Rate: 0.5}
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "slow", slow).Status)
	sc.rounds(s, 40, nil)
	reply := sc.undoAll(s, "meanwhile", "op")
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "slow is undoing it")
	single := sc.ask(s, wire.Command{Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "j-5"})
	require.Equal(t, wire.StatusConflict, single.Status)
	require.Contains(t, single.Reason, "slow takes back all")
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandCancel, Bulk: &wire.Operation{ID: "slow"}}).Status)
	sc.rounds(s, 10, nil)
	first, _ := s.entries.Operation("slow")
	require.Equal(t, wire.OperationCancelled, first.State)
	require.Positive(t, first.Done)
	require.Less(t, first.Done, int64(6))

	require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "rest", "op").Status)
	sc.rounds(s, 40, nil)
	rest := sc.ended(s, "rest")
	require.Equal(t, []int64{6 - first.Done, 6 - first.Done, 0, 0}, counts(rest))
	require.EqualValues(t, 7, s.entries.Total(wire.ScheduledJobs))
	op, _ := s.entries.Operation("op")
	require.Equal(t, "rest", op.UndoneBy)
}

// An entry that was undone by itself, or retried, changed again or fired since, stays as it is, and
// the reason is reported.
func TestUndoSkipsLaterActions(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		sc, s := done(t, wire.CommandDelete, 4)
		require.Equal(t, wire.StatusOK, sc.ask(s, wire.Command{Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "j-1"}).Status)
		require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j-1"}).Status)
		require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
		sc.rounds(s, 40, nil)
		got := sc.ended(s, "undo")
		require.Equal(t, []int64{4, 3, 1, 0}, counts(got))
		require.Equal(t, []wire.Skip{{Reason: "it was undone already", Count: 1}}, got.Skips)
		require.Equal(t, map[string]int{"j-1": 1}, sc.copies())
		found, err := s.entries.Find(wire.ScheduledJobs, "j-1")
		require.NoError(t, err)
		require.Empty(t, found, "it has fired")
	})
	t.Run("killed", func(t *testing.T) {
		sc, s := done(t, wire.CommandKill, 4)
		require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandRetry, Stream: wire.DeadJobs, JID: "j-0"}).Status)
		require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.DeadJobs, JID: "j-1"}).Status)
		require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
		sc.rounds(s, 40, nil)
		got := sc.ended(s, "undo")
		require.Equal(t, []int64{4, 2, 2, 0}, counts(got))
		require.Len(t, got.Skips, 1)
		require.Contains(t, got.Skips[0].Reason, "not there any more")
		require.Zero(t, s.entries.Total(wire.DeadJobs))
	})
	t.Run("changed", func(t *testing.T) {
		sc, s := done(t, wire.CommandChange, 4)
		again := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j-0", Changes: []byte(`{"queue":"other"}`)}
		require.Equal(t, wire.StatusOK, sc.ask(s, again).Status)
		require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j-1"}).Status)
		require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
		sc.rounds(s, 40, nil)
		got := sc.ended(s, "undo")
		require.Equal(t, []int64{4, 2, 2, 0}, counts(got))
		require.Contains(t, got.Skips[0].Reason, "what it was changed to is not pending any more")
		require.EqualValues(t, 1, s.entries.ByQueue(wire.ScheduledJobs)["other"])
	})
}

// A leader that dies anywhere in between leaves the rest to the next one, which restores nothing a
// second time.
func TestUndoSurvivesFailover(t *testing.T) {
	for _, action := range []string{wire.CommandDelete, wire.CommandKill, wire.CommandChange} {
		for dies := range 30 {
			sc, s := done(t, action, 5)
			require.NoError(t, s.core.command(sc.now, wire.Command{ID: "undo", Command: wire.CommandOperate, Bulk: &wire.Operation{Action: wire.CommandUndo, Undoes: "op"}},
				func(wire.Reply) {}))
			sc.rounds(s, 1, nil)
			for range 2 * dies { // a step, or a publish that the broker processes, at a time
				require.NoError(t, s.step(sc.now))
				sc.broker.process(s.conn, sc.now)
				for len(s.conn.answers) > 0 && dies%2 == 0 {
					require.NoError(t, s.answer(sc.now))
				}
				require.NoError(t, s.readAll())
			}
			s.lose()
			next := sc.sidecar("next")
			sc.elect(next, never)
			sc.rounds(next, 60, nil)
			got := sc.ended(next, "undo")
			require.Equal(t, []int64{5, 5, 0, 0}, counts(got), "%s, dies after %d: %+v", action, dies, got)
			require.EqualValues(t, 6, next.entries.Total(wire.ScheduledJobs))
			require.Zero(t, next.entries.Total(wire.DeadJobs))
			require.Equal(t, 5, sc.journaled()[wire.TypeUndone])
		}
	}
}

// An undo also works below low water: the operation is written again above it, and the journal can
// be read below it.
func TestUndoBelowLowWater(t *testing.T) {
	sc, s := done(t, wire.CommandDelete, 6)
	carry := func(s *modelSidecar) {
		require.NoError(t, s.core.beginCarry(0))
		sc.rounds(s, 20, nil)
	}
	carry(s)
	require.Equal(t, wire.StatusAccepted, sc.operate(s, "undo", wire.Operation{Action: wire.CommandUndo, Undoes: "op", Rate: 0.5}).Status)
	sc.rounds(s, 40, nil)
	carry(s)
	require.Equal(t, 2, sc.journaled()[wire.TypeLowWater])
	s.lose()
	next := sc.sidecar("next")
	sc.elect(next, never)
	sc.rounds(next, 400, nil)
	require.Equal(t, []int64{6, 6, 0, 0}, counts(sc.ended(next, "undo")))
	require.EqualValues(t, 7, next.entries.Total(wire.ScheduledJobs))
}

// Entries that the journal has forgotten cannot be restored, and are counted. The others are
// restored.
func TestUndoCountsEntriesTheJournalForgot(t *testing.T) {
	sc, s := done(t, wire.CommandDelete, 6)
	journal := sc.broker.streams[wire.Journal]
	n := 0
	for i, r := range journal.records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeDeleted {
			if n++; n == 3 {
				journal.base, journal.records = journal.base+i, journal.records[i:]
				break
			}
		}
	}
	require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
	sc.rounds(s, 60, nil)
	got := sc.ended(s, "undo")
	require.Equal(t, []int64{6, 4, 2, 0}, counts(got))
	require.Contains(t, got.Skips[0].Reason, "the journal has forgotten")
}

// A journal that cannot be read now is read later.
func TestUndoRetriesUnreadableJournal(t *testing.T) {
	sc, s := done(t, wire.CommandDelete, 6)
	read, fails := s.core.setup.readLater, 3
	s.core.setup.readLater = func(from int64, each func(*wire.Record) error) *reading {
		if fails--; fails < 0 {
			return read(from, each)
		}
		r := newReading()
		r.end(fmt.Errorf("no connection"))
		return r
	}
	require.Equal(t, wire.StatusAccepted, sc.undoAll(s, "undo", "op").Status)
	sc.rounds(s, 60, nil)
	require.Equal(t, []int64{6, 6, 0, 0}, counts(sc.ended(s, "undo")))
}

// Records of a leader that had been followed, and of other users, are not part of an operation.
func TestUndoIgnoresVoidRecords(t *testing.T) {
	sc, s := done(t, wire.CommandDelete, 2)
	op, _ := s.entries.Operation("op")
	forged := wire.JournalRecord{Type: wire.TypeUndone, Stream: wire.ScheduledJobs, Offset: 1, Epoch: s.core.ledger.Epoch(), JID: "j-1", Undoes: op.FirstRecord + 2}
	sc.broker.append(wire.Journal, "client", forged.Append(wire.Journal, 7, 0))
	s.lose()
	next := sc.sidecar("next")
	sc.elect(next, never)
	sc.rounds(next, 10, nil)
	forged.Epoch = op.FirstRecord - 1
	sc.broker.append(wire.Journal, millrace, forged.Append(wire.Journal, 7, 0))
	sc.rounds(next, 2, nil)
	require.Equal(t, wire.StatusAccepted, sc.undoAll(next, "undo", "op").Status)
	sc.rounds(next, 40, nil)
	require.Equal(t, []int64{2, 2, 0, 0}, counts(sc.ended(next, "undo")))
}

func TestOffsetsOfAnOperation(t *testing.T) {
	o := offsets{}
	for _, at := range []int64{0, 1, 63, 64, 32767, 32768, 1 << 40} {
		require.False(t, o.has(at))
		o.add(at)
		require.True(t, o.has(at))
	}
	require.False(t, o.has(2))
	require.Len(t, o, 3)
}

// Reasons are counted separately, up to a limit.
func TestReasonsForSkipping(t *testing.T) {
	o := newOperation(wire.Operation{Action: wire.CommandUndo}, time.Time{})
	for i := range 30 {
		o.addSkip(fmt.Sprint(i), 1)
	}
	require.Len(t, o.Skips, maxReasons)
	require.EqualValues(t, 30, o.Skipped())
	require.Equal(t, []wire.Skip{{Reason: "0", Count: 1}, {Reason: "of other reasons", Count: 21}}, []wire.Skip{o.Skips[0], o.Skips[maxReasons-1]})
}
