package scheduler

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A leader that reads the record of a newer epoch ends its own. It does nothing more, and does not
// fire what is due.
func TestFencedLeaderDoesNothing(t *testing.T) {
	sc := newScene(t)
	old := sc.leader("old")
	stale := old.conn
	sc.broker.conn = nil // the broker has revoked the lock; the old leader has not noticed
	next := sc.leader("next")
	sc.due("j", "q")
	require.NoError(t, old.readAll())
	_, err := old.core.step(sc.now)
	require.ErrorIs(t, err, errFenced)
	require.Empty(t, stale.out)
	sc.rounds(next, 3, nil)
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
}

// The claim of a leader that gave up may arrive after that of the next leader, and overtakes it: no
// view accepts the epoch of the next leader. That one gives its claim up as well.
func TestOvertakenClaimIsGivenUp(t *testing.T) {
	sc := newScene(t)
	first, second := sc.sidecar("first"), sc.sidecar("second")
	for _, s := range []*modelSidecar{first, second} {
		require.NoError(t, s.readAll())
		s.stand(never)
		require.NoError(t, s.step(sc.now))
		require.Len(t, s.conn.out, 1)
	}
	for _, s := range []*modelSidecar{second, first} { // the broker takes them in another order than they were sent
		sc.broker.process(s.conn, sc.now)
	}
	require.NoError(t, second.readAll())
	require.NoError(t, second.step(sc.now), "it has no answer yet")
	require.NoError(t, second.answer(sc.now))
	for range int(overtakenAfter / time.Second) {
		require.NoError(t, second.step(sc.now))
		sc.now = sc.now.Add(time.Second)
	}
	sc.now = sc.now.Add(time.Second)
	require.ErrorIs(t, second.step(sc.now), errFenced)
}

// A claim that the view has read counts, even without a confirm.
func TestClaimReadByViewNeedsNoConfirm(t *testing.T) {
	sc := newScene(t)
	s := sc.sidecar("a")
	require.NoError(t, s.readAll())
	s.stand(never)
	for s.core.phase <= phaseCatchingUp {
		require.NoError(t, s.step(sc.now))
		for len(s.conn.out) > 0 {
			sc.broker.process(s.conn, sc.now)
		}
		s.conn.answers = nil
		require.NoError(t, s.readAll())
	}
	_, open := s.core.ledger.Oldest()
	require.False(t, open)
}

// A confirm of a tag that was never published has no effect.
func TestConfirmOfUnknownTagIsIgnored(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.fires(s, "j", "q")
	before := s.core.ledger.Watermark()
	for _, ack := range []bool{true, false} {
		require.NoError(t, s.core.ledger.Confirmed(sc.now, 1<<40, ack))
	}
	require.Equal(t, before, s.core.ledger.Watermark())
	require.Equal(t, 1, s.core.ledger.Open())
	require.Len(t, s.conn.out, 1, "nothing is published again")
}

// A sidecar that stands for election before its view has caught up writes its first record again. A
// view that begins at that record would otherwise know less than the journal.
func TestOpenedRecordIsRepeatedAfterCatchUp(t *testing.T) {
	sc := newScene(t)
	late := sc.sidecar("late")
	require.NoError(t, late.readAll())
	first := sc.leader("first")
	sc.at("j", "q", sc.now.Add(day))
	sc.rounds(first, 2, nil)
	require.NoError(t, first.core.beginCarry(0))
	sc.rounds(first, 12, nil)
	require.NotEmpty(t, first.entries.State().LowWater)
	first.lose()
	late.stand(never)
	sc.rounds(late, 12, nil)
	require.Equal(t, phaseLeading, late.core.phase)
	require.Equal(t, 3, sc.journaled()[wire.TypeOpened], "the first leader's, and two of the late one")

	fresh := sc.sidecar("fresh")
	for i, r := range sc.broker.streams[wire.Journal].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeOpened {
			fresh.at[wire.Journal] = i // the newest: a rebuild begins there
		}
	}
	require.NoError(t, fresh.readAll())
	require.Equal(t, late.entries.State().LowWater, fresh.entries.State().LowWater)
	require.EqualValues(t, 1, fresh.entries.Total(wire.ScheduledJobs))
}

// A job that was in flight when a connection died is suspected: it is tried alone from then on. The
// suspicion ends with its entry.
func TestSuspicionEndsWithEntry(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	at := sc.at("j", "q", sc.now.Add(day))
	kept := sc.at("kept", "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"}).Status)
	s.lose()
	s.suspect = map[ledger.EntryID]int{{Stream: wire.ScheduledJobs, Offset: at}: 1, {Stream: wire.ScheduledJobs, Offset: kept}: 1}
	sc.elect(s, never)
	sc.rounds(s, 8, nil)
	require.Equal(t, map[ledger.EntryID]int{{Stream: wire.ScheduledJobs, Offset: kept}: 1}, s.core.ledger.Suspects())
	sc.now = sc.now.Add(2 * day)
	sc.rounds(s, 3, nil)
	require.Empty(t, s.core.ledger.Suspects(), "it has been fired, and no connection died")
	require.Equal(t, map[string]int{"kept": 1}, sc.copies())
}

// A queue that refused one job and took another is still held until its time has come.
func TestQueueThatRefusedOneJobIsHeld(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.nacks = func(m wire.Message) bool { return m.MessageID == "refused" && m.Exchange == wire.ExchangeFire }
	sc.due("refused", "q")
	sc.due("taken", "q")
	sc.rounds(s, 2, nil)
	require.Equal(t, map[string]int{"taken": 1}, sc.copies())
	held := s.core.queues.heldQueues()
	require.Len(t, held, 1)
	require.Equal(t, sc.now, held[0].Since)
	sc.broker.nacks = nil
	sc.rounds(s, 10, nil)
	require.Empty(t, s.core.queues.heldQueues())
	require.Equal(t, map[string]int{"refused": 1, "taken": 1}, sc.copies())
}

// A command about a due entry that was already looked up overtakes it. The entry fires once.
func TestCommandOnQueuedEntryFiresItOnce(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 300 {
		sc.due(fmt.Sprint("j-", i), fmt.Sprint("q-", i%3))
	}
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now)) // one batch, and some entries of each queue are left
	require.Equal(t, batch, s.core.ledger.Open())
	require.NoError(t, s.core.command(sc.now, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j-299"}, func(wire.Reply) {}))
	sc.exchange(s)
	sc.rounds(s, 5, nil)
	copies := sc.copies()
	require.Len(t, copies, 300)
	require.Equal(t, 1, copies["j-299"])
}

// Two entries with one jid and one time that are not the same publish are two jobs.
func TestDifferentEntriesWithOneJIDBothFire(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("twin", sc.now, `,"args":[1]`)
	sc.scheduled("twin", sc.now, `,"args":[2]`)
	sc.scheduled("twin", sc.now, `,"args":[2]`)
	sc.rounds(s, 4, nil)
	require.Equal(t, map[string]int{"twin": 2}, sc.copies())
	require.Equal(t, 1, sc.journaled()[wire.TypeDuplicate])
}

// A repetition is found that the view reads after others that are due at the same time have fired.
func TestRepetitionThatComesLateIsDropped(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	at := sc.now
	for i := range batch + 3 {
		sc.at(fmt.Sprint("j-", i), "q", at)
	}
	require.NoError(t, s.readAll())
	require.NoError(t, s.step(sc.now)) // one batch, and some entries are left
	last := fmt.Sprint("j-", batch+2)
	sc.at(last, "q", at)
	require.NoError(t, s.readAll())
	sc.rounds(s, 6, nil)
	require.Len(t, sc.copies(), batch+3)
	require.Equal(t, 1, sc.copies()[last])
	require.Equal(t, 1, sc.journaled()[wire.TypeDuplicate])
}

// A command may name an entry by the offset at which it was seen, even if a replacement stands for
// it now.
func TestCommandAcceptsOldOffset(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	seen := sc.at("j", "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(`{"queue":"other"}`)}
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	cmd.Changes = json.RawMessage(`{"priority":3}`)
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	cmd = wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "j", Offset: &seen}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, map[string]int{"j": 1}, sc.copies())
	require.Equal(t, "other", sc.broker.copies[0].queue)
}

// A job that fits as it is, and is too large as a dead job with its reason, stays in its stream and
// shows why.
func TestOversizedKillLeavesEntry(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("large", sc.now.Add(day), `,"args":["`+strings.Repeat("x", wire.MaxRecord-200)+`"]`)
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "large", Reason: strings.Repeat("r", 300)}
	require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status)
	found, err := s.entries.Find(wire.ScheduledJobs, "large")
	require.NoError(t, err)
	require.Contains(t, found[0].Parked, "as a dead job it has")
	require.Empty(t, sc.deadJobs())
	cmd.Command = wire.CommandTrigger
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, map[string]int{"large": 1}, sc.copies())
}
