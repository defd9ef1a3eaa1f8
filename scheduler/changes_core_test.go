package scheduler

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func change(jid, changes string) wire.Command {
	return wire.Command{Command: wire.CommandChange, Stream: wire.ScheduledJobs, JID: jid, Changes: json.RawMessage(changes)}
}

// A change is journaled once the broker has confirmed the replacement, even if the view has read it
// before.
func TestChangeIsJournaledAfterConfirm(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	var reply wire.Reply
	require.NoError(t, s.core.command(sc.now, change("j", `{"queue":"other"}`), func(r wire.Reply) { reply = r }))
	sc.broker.process(s.conn, sc.now)
	require.NoError(t, s.readAll())
	for range 3 {
		require.NoError(t, s.step(sc.now))
	}
	require.Empty(t, s.conn.out, "nothing is journaled yet")
	require.Zero(t, reply.Status)
	sc.rounds(s, 4, nil)
	require.NoError(t, s.answer(sc.now))
	sc.rounds(s, 4, nil)
	require.Equal(t, wire.StatusOK, reply.Status)
	require.Equal(t, 1, sc.journaled()[wire.TypeChanged])
}

// Low water does not pass a change that the journal refuses: no leader could journal it any more.
func TestLowWaterWaitsForChanges(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	sc.broker.nacks = func(m wire.Message) bool {
		j, err := wire.ParseJournal(m.Body)
		return err == nil && j.Type == wire.TypeChanged
	}
	var reply wire.Reply
	require.NoError(t, s.core.command(sc.now, change("j", `{"queue":"other"}`), func(r wire.Reply) { reply = r }))
	sc.rounds(s, 3, nil)
	require.NoError(t, s.core.beginCarry(0))
	for i := range 20 { // all else is confirmed, as each fire says
		sc.due(fmt.Sprint("due-", i), "q")
		sc.rounds(s, 1, nil)
	}
	require.Zero(t, sc.journaled()[wire.TypeLowWater])
	require.Zero(t, reply.Status)
	sc.broker.nacks = nil
	sc.rounds(s, 10, nil)
	require.Equal(t, wire.StatusOK, reply.Status)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	require.Equal(t, map[string]int64{"other": 1}, s.entries.ByQueue(wire.ScheduledJobs))
}

// The reason for which a queue dropped a job survives a change and a carry-over.
func TestDropReasonSurvivesChangeAndCarryOver(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range 2 {
		body := fmt.Appendf(nil, `{"jid":"dropped-%d","died_at":%d,"job":{"class":"C","queue":"q"}}`, i, sc.now.Unix())
		sc.broker.append(wire.DeadJobs, millrace, wire.Message{Body: body, Headers: map[string]any{wire.HeaderDropped: "maxlen"}})
	}
	s.core.setup.deadMax = 100
	sc.rounds(s, 2, nil)
	require.EqualValues(t, 2, s.entries.Dead(true))
	cmd := change("dropped-0", `{"queue":"other"}`)
	cmd.Stream = wire.DeadJobs
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	require.EqualValues(t, 2, s.entries.Dead(true))
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 15, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	require.Equal(t, []int64{2, 0}, []int64{s.entries.Dead(true), s.entries.Dead(false)})
	require.Equal(t, map[string]int64{"q": 1, "other": 1}, s.entries.ByQueue(wire.DeadJobs))
}

// A kill is undone. Before a leader journals that, the leader dies and the dead jobs are created
// again: the entry is back, and no dead job of the new stream is removed for it.
func TestUndoneKillKeepsNewDeadJobs(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("j")
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "j"}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	cmd.Command = wire.CommandUndo
	require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) { t.Error("the command was answered") }))
	sc.broker.process(s.conn, sc.now)
	require.NoError(t, s.readAll())
	s.lose()
	old := sc.broker.streams[wire.DeadJobs]
	fresh := &modelStream{generation: old.generation + 1}
	sc.broker.streams[wire.DeadJobs] = fresh
	for len(fresh.records) < len(old.records)+1 { // another record is at the offset of the old one
		body := fmt.Appendf(nil, `{"jid":"other-%d","died_at":%d,"job":{"class":"C"}}`, len(fresh.records), sc.now.Unix())
		sc.broker.append(wire.DeadJobs, "client", wire.Message{Body: body})
	}
	dead := len(fresh.records)
	sc.elect(s, never)
	sc.rounds(s, 20, nil)
	require.Equal(t, phaseLeading, s.core.phase)
	undone := 0
	for _, r := range sc.broker.streams[wire.Journal].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeUndone {
			undone++
			require.Nil(t, j.Dead, "it names no dead job of the new stream")
		}
	}
	require.Equal(t, 1, undone)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
	require.EqualValues(t, dead, s.entries.Total(wire.DeadJobs))
}

// A change whose result was trimmed as too old cannot be undone.
func TestUndoOfTrimmedChange(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.append(wire.DeadJobs, "client", wire.Message{Body: fmt.Appendf(nil, `{"jid":"j","died_at":%d,"job":{"class":"C"}}`, sc.now.Unix())})
	sc.rounds(s, 2, nil)
	cmd := change("j", `{"queue":"other"}`)
	cmd.Stream = wire.DeadJobs
	require.Equal(t, wire.StatusOK, sc.ask(s, cmd).Status)
	sc.now = sc.now.Add(2 * deadAge)
	sc.rounds(s, 5, nil)
	require.Zero(t, s.entries.Total(wire.DeadJobs))
	cmd.Command = wire.CommandUndo
	reply := sc.ask(s, cmd)
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Contains(t, reply.Reason, "not pending any more")
	require.Zero(t, s.entries.Total(wire.DeadJobs))
}
