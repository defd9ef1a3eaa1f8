package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// removed is a leader that has deleted an entry, with the command that undoes that.
func removed(t *testing.T, more string) (*scene, *modelSidecar, wire.Command) {
	t.Helper()
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("j", sc.now.Add(day), more)
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	cmd.Command = wire.CommandUndo
	return sc, s, cmd
}

func TestUndoOfUnknownEntry(t *testing.T) {
	sc, s, cmd := removed(t, "")
	wrong := int64(77)
	cmd.Offset = &wrong
	require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status)
	cmd.Offset, cmd.JID = nil, "unknown"
	require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status)
	cmd.JID = "j"
	s.fetch = func(string, int64) ([]byte, error) { return nil, errors.New("no connection") }
	reply := sc.ask(s, cmd)
	require.Equal(t, wire.StatusUnavailable, reply.Status)
	require.Contains(t, reply.Reason, "no connection")
	s.fetch = func(string, int64) ([]byte, error) { return nil, nil }
	require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status, "the journal has forgotten it")
	s.fetch = nil
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
}

// An action can be undone as soon as it is answered, before the view has read it.
func TestUndoRightAfterAnswer(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("j", sc.now.Add(day), "")
	sc.rounds(s, 2, nil)
	var undone wire.Reply
	undo := wire.Command{Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "j"}
	remove := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "j"}
	require.NoError(t, s.core.command(sc.now, remove, func(r wire.Reply) {
		require.Equal(t, wire.StatusDone, r.Status)
		require.NoError(t, s.core.command(sc.now, undo, func(r wire.Reply) { undone = r }))
	}))
	sc.rounds(s, 8, nil)
	require.Equal(t, wire.StatusOK, undone.Status, undone.Reason)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
}

// A record that is too large for the journal is read from its old place.
func TestUndoOfLargeEntries(t *testing.T) {
	sc, s, cmd := removed(t, `,"args":["`+strings.Repeat("x", 70<<10)+`"]`)
	journal := sc.broker.streams[wire.Journal]
	for i := range journal.records {
		if j, err := wire.ParseJournal(journal.records[i].Body); err == nil && j.Type == wire.TypeDeleted {
			j.Entry = nil
			journal.records[i].Body = j.Append(wire.Journal, 1, 0).Body
		}
	}
	s.fetch = func(stream string, offset int64) ([]byte, error) {
		if stream == wire.ScheduledJobs {
			return nil, errors.New("no connection")
		}
		return journal.get(offset).Body, nil
	}
	require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status)
	s.fetch = func(stream string, offset int64) ([]byte, error) {
		if stream == wire.ScheduledJobs {
			return []byte(`{"jid":"another","scheduled_at":1,"job":{"class":"C"}}`), nil
		}
		return journal.get(offset).Body, nil
	}
	require.GreaterOrEqual(t, sc.ask(s, cmd).Status, 400, "another entry stands there now")
	s.fetch = nil
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
}

// A change that cannot be made is answered, and changes nothing.
func TestInvalidChangesAreRefused(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("j", sc.now.Add(day), "")
	sc.rounds(s, 2, nil)
	cmd := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(`{"colour":"red"}`)}
	require.Equal(t, wire.StatusBad, sc.ask(s, cmd).Status)
	cmd.Changes = json.RawMessage(`{"queue":"other"}`)
	s.conn.unpublishable = func(m wire.Message) bool { return m.Key == wire.ScheduledJobs }
	require.Equal(t, wire.StatusBad, sc.ask(s, cmd).Status)
	s.conn.unpublishable = nil
	require.Equal(t, map[string]int64{"q": 1}, s.entries.ByQueue(wire.ScheduledJobs))
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	require.Equal(t, map[string]int64{"other": 1}, s.entries.ByQueue(wire.ScheduledJobs))

	sc.broker.nacks = func(m wire.Message) bool { return m.Key == wire.ScheduledJobs }
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { t.Error("answered, although it is unknown whether the stream has it") }))
	require.ErrorContains(t, sc.ends(s), "refused an entry that stands for another")
}

// An entry that cannot be restored is refused: its stream was created again, it was changed since,
// or either of two dead jobs may be meant.
func TestImpossibleUndoIsRefused(t *testing.T) {
	t.Run("created again", func(t *testing.T) {
		sc, s, cmd := removed(t, "")
		sc.at("another", "q", sc.now.Add(day))
		sc.rounds(s, 2, nil)
		old := sc.broker.streams[wire.ScheduledJobs]
		sc.broker.streams[wire.ScheduledJobs] = &modelStream{generation: old.generation + 1}
		s.lose()
		for range 4 {
			sc.at("new", "q", sc.now.Add(day))
		}
		sc.elect(s, never)
		sc.rounds(s, 15, nil)
		require.GreaterOrEqual(t, sc.ask(s, cmd).Status, 400)
		require.Zero(t, len(sc.copies()))
	})
	t.Run("changed, and fired", func(t *testing.T) {
		sc := newScene(t)
		s := sc.leader("a")
		sc.scheduled("j", sc.now.Add(day), "")
		sc.rounds(s, 2, nil)
		at := sc.now.Add(time.Second).Unix()
		cmd := wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: "j", Changes: json.RawMessage(fmt.Sprintf(`{"at":%d}`, at))}
		require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
		sc.rounds(s, 10, nil)
		require.Equal(t, 1, sc.copies()["j"])
		cmd.Command = wire.CommandUndo
		require.Equal(t, wire.StatusConflict, sc.ask(s, cmd).Status)
		require.Equal(t, 1, sc.copies()["j"])
	})
	t.Run("killed, and two are dead", func(t *testing.T) {
		sc := newScene(t)
		s := sc.leader("a")
		sc.scheduled("j", sc.now.Add(day), "")
		sc.rounds(s, 2, nil)
		cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}
		require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
		sc.broker.append(wire.DeadJobs, "client", wire.Message{Body: []byte(sc.deadJobs()[0])})
		sc.rounds(s, 2, nil)
		cmd.Command = wire.CommandUndo
		require.Equal(t, wire.StatusConflict, sc.ask(s, cmd).Status)
		require.EqualValues(t, 2, s.entries.Total(wire.DeadJobs))
	})
}
