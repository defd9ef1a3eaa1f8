package scheduler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// damage makes a table of the view unreadable. The table is named by the first byte of its keys.
func (sc *scene) damage(s *modelSidecar, table byte) {
	sc.t.Helper()
	require.NoError(sc.t, s.store.Update(func(tx *view.Tx) error {
		var keys [][]byte
		if err := tx.Scan([]byte{table}, []byte{table + 1}, false, func(key, _ []byte) bool {
			keys = append(keys, slices.Clone(key))
			return true
		}); err != nil {
			return err
		}
		require.NotEmpty(sc.t, keys, "there is something to damage")
		for _, key := range keys {
			if err := tx.Set(key, bytes.Repeat([]byte{0xff}, 20)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Tables of the view that are damaged here.
const (
	entriesTable  = 'e'
	marksTable    = 'w'
	happenedTable = 'h'
	rejectsTable  = 'r'
	awaitedTable  = 'a'
)

// offsetOf returns the offset of the first record of a stream that contains a text.
func (sc *scene) offsetOf(stream, text string) int64 {
	sc.t.Helper()
	for _, r := range sc.broker.streams[stream].records {
		if bytes.Contains(r.Body, []byte(text)) {
			return r.Offset
		}
	}
	require.FailNow(sc.t, "no such record", "%s in %s", text, stream)
	return -1
}

// full is a leader with at least one of everything.
func full(t *testing.T) (*scene, *modelSidecar) {
	t.Helper()
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.append(wire.Retries, "client", wire.Message{Body: []byte("garbage")})
	for _, jid := range []string{"j", "deleted", "killed", "changed", "twin", "twin"} {
		sc.at(jid, "q", sc.now.Add(day))
	}
	sc.rounds(s, 2, nil)
	for jid, command := range map[string]string{"deleted": wire.CommandDelete, "killed": wire.CommandKill, "changed": wire.CommandChange} {
		cmd := wire.Command{Command: command, Stream: wire.ScheduledJobs, JID: jid}
		if command == wire.CommandChange {
			cmd.Changes = json.RawMessage(`{"queue":"other"}`)
		}
		require.Less(t, sc.ask(s, cmd).Status, 300, jid)
	}
	return sc, s
}

// A damaged view ends the epoch. The leader does not treat it as empty: it does not answer "not
// found", fires nothing, drops nothing, and does not move low water.
func TestDamagedViewEndsEpoch(t *testing.T) {
	var first, rejected int64
	about := func(command, jid string, offset *int64) func(*scene, *modelSidecar) error {
		return func(sc *scene, s *modelSidecar) error {
			cmd := wire.Command{ID: "c", Command: command, Stream: wire.ScheduledJobs, JID: jid, Offset: offset}
			if command == wire.CommandDismiss {
				cmd.Stream = wire.Retries
			}
			return s.core.command(sc.now, cmd, func(r wire.Reply) { sc.t.Errorf("answered: %+v", r) })
		}
	}
	operates := func(op wire.Operation) func(*scene, *modelSidecar) error {
		return func(sc *scene, s *modelSidecar) error {
			op.Action, op.Stream = wire.CommandDelete, wire.ScheduledJobs
			return s.core.command(sc.now, wire.Command{ID: "op", Command: wire.CommandOperate, Bulk: &op}, func(wire.Reply) {})
		}
	}
	expected := int64(4)
	for name, c := range map[string]struct {
		table byte
		do    func(*scene, *modelSidecar) error
	}{
		"a command":             {entriesTable, about(wire.CommandDelete, "j", nil)},
		"a command by offset":   {entriesTable, about(wire.CommandTrigger, "j", &first)},
		"undo":                  {happenedTable, about(wire.CommandUndo, "deleted", nil)},
		"undo of a change":      {entriesTable, about(wire.CommandUndo, "changed", nil)},
		"undo of a kill":        {entriesTable, about(wire.CommandUndo, "killed", nil)},
		"dismiss":               {rejectsTable, about(wire.CommandDismiss, "", &rejected)},
		"an operation":          {entriesTable, operates(wire.Operation{Filter: &wire.Filter{}})},
		"an operation on jids":  {entriesTable, operates(wire.Operation{JIDs: []string{"j"}})},
		"counting what matches": {entriesTable, operates(wire.Operation{Filter: &wire.Filter{}, Expected: &expected})},
		"carrying over":         {entriesTable, func(_ *scene, s *modelSidecar) error { return s.core.beginCarry(0) }},
		"firing": {entriesTable, func(sc *scene, _ *modelSidecar) error {
			sc.now = sc.now.Add(2 * day)
			return nil
		}},
		"trimming": {entriesTable, func(_ *scene, s *modelSidecar) error {
			s.core.setup.deadMax = 0
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sc, s := full(t)
			rejected, first = sc.offsetOf(wire.Retries, "garbage"), sc.offsetOf(wire.ScheduledJobs, `"jid":"j"`)
			sc.damage(s, c.table)
			before := sc.journaled()
			err := c.do(sc, s)
			if err == nil {
				err = sc.ends(s)
			}
			require.Error(t, err)
			require.Regexp(t, "damaged|invalid character", err)
			require.Empty(t, sc.copies())
			now := sc.journaled()
			for _, what := range []string{wire.TypeDeleted, wire.TypeLowWater, wire.TypeTrimmed, wire.TypeDismissed, wire.TypeUndone, wire.TypeRefused} {
				require.Equal(t, before[what], now[what], what)
			}
		})
	}
}

// damagedLeader has a sidecar lead until its damaged view ends the epoch.
func (sc *scene) damagedLeader(s *modelSidecar) {
	sc.t.Helper()
	sc.elect(s, never)
	require.ErrorContains(sc.t, sc.ends(s), "damaged")
	require.NotEqual(sc.t, phaseLeading, s.core.phase)
	require.Empty(sc.t, sc.copies())
}

// A leader does not lead if its view cannot say what is in doubt, suspected or not yet journaled.
func TestDamagedViewDoesNotLead(t *testing.T) {
	t.Run("in doubt", func(t *testing.T) {
		sc := newScene(t)
		s := sc.leader("a")
		sc.fires(s, "j", "q")
		sc.inFlight(s)
		require.NoError(t, s.readAll())
		sc.damage(s, entriesTable)
		sc.damagedLeader(s)
	})
	t.Run("suspected", func(t *testing.T) {
		sc := newScene(t)
		s := sc.leader("a")
		at := sc.at("j", "q", sc.now.Add(day))
		sc.rounds(s, 2, nil)
		s.lose()
		s.suspect = map[ledger.EntryID]int{{Stream: wire.ScheduledJobs, Offset: at}: 1}
		sc.damage(s, entriesTable)
		sc.damagedLeader(s)
	})
	t.Run("not journaled yet", func(t *testing.T) {
		sc := newScene(t)
		s := sc.leaderWith("j")
		cmd := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(`{"at":1}`)}
		require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { t.Error("the command was answered too early") }))
		sc.broker.process(s.conn, sc.now)
		require.NoError(t, s.readAll())
		s.lose()
		sc.damage(s, awaitedTable)
		sc.damagedLeader(s)
	})
}

// A leader that cannot read back a change does not answer that it was made.
func TestUnreadableChangeIsNotAnswered(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	cmd := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(`{"queue":"other"}`)}
	require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { t.Errorf("answered: %+v", r) }))
	sc.broker.process(s.conn, sc.now)
	require.NoError(t, s.answer(sc.now))
	require.NoError(t, s.readAll())
	sc.damage(s, awaitedTable)
	require.ErrorContains(t, sc.ends(s), "damaged")
	require.Zero(t, sc.journaled()[wire.TypeChanged])
}

// One of two entries with one jid cannot be read. The other does not fire before it is known
// whether they are the same publish.
func TestUnreadableTwinDelaysFire(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 3 {
		sc.at("twin", fmt.Sprint("q", i), sc.now.Add(time.Minute))
	}
	sc.rounds(s, 2, nil)
	require.NoError(t, s.store.Update(func(tx *view.Tx) error {
		var last []byte
		require.NoError(t, tx.Scan([]byte{entriesTable}, []byte{entriesTable + 1}, false, func(key, _ []byte) bool {
			last = slices.Clone(key)
			return true
		}))
		return tx.Set(last, []byte{0xff})
	}))
	sc.now = sc.now.Add(2 * time.Minute)
	require.ErrorContains(t, sc.ends(s), "damaged")
	require.Empty(t, sc.copies())
}
