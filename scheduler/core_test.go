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

// leader is a sidecar that leads and has reconciled everything.
func (sc *scene) leader(name string) *modelSidecar {
	s := sc.sidecar(name)
	sc.elect(s, never)
	sc.rounds(s, 8, nil)
	require.Equal(sc.t, phaseLeading, s.core.phase)
	return s
}

// leaderWith is a leader that has read an entry, which is due in a day.
func (sc *scene) leaderWith(jid string) *modelSidecar {
	s := sc.leader("a")
	sc.at(jid, "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	return s
}

// scheduled appends a scheduled entry with more members in its job.
func (sc *scene) scheduled(jid string, due time.Time, more string) int64 {
	body := fmt.Sprintf(`{"jid":%q,"scheduled_at":%d,"job":{"class":"C","queue":"q"%s}}`, jid, due.Unix(), more)
	return sc.broker.append(wire.ScheduledJobs, "client", wire.Message{Body: []byte(body), Headers: map[string]any{wire.HeaderTraceparent: "00-trace"}})
}

// ask sends a command and lets the leader work until it is answered.
func (sc *scene) ask(s *modelSidecar, cmd wire.Command) (got wire.Reply) {
	sc.t.Helper()
	answers := 0
	require.NoError(sc.t, s.core.command(sc.now, cmd, func(r wire.Reply) { got = r; answers++ }))
	sc.rounds(s, 6, nil)
	require.Equal(sc.t, 1, answers, "%+v is answered once", cmd)
	return got
}

// journaled counts the records of the journal by type or op.
func (sc *scene) journaled() map[string]int {
	n := map[string]int{}
	for _, r := range sc.broker.streams[wire.Journal].records {
		if d, ok := wire.DispatchOf(r.Headers); ok {
			n[d.Op]++
		} else if j, err := wire.ParseJournal(r.Body); err == nil {
			n[j.Type]++
		}
	}
	return n
}

func (sc *scene) deadJobs() (bodies []string) {
	for _, r := range sc.broker.streams[wire.DeadJobs].records {
		if _, ok := wire.DispatchOf(r.Headers); ok {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

const day = 24 * time.Hour

func TestExpiredJobIsNotFired(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	gone := fmt.Sprintf(`,"expires_at":%d`, sc.now.Add(-time.Minute).Unix())
	sc.scheduled("buried", sc.now, gone)
	sc.scheduled("dropped", sc.now, gone+`,"dead":false`)
	sc.scheduled("fires", sc.now, fmt.Sprintf(`,"expires_at":%d`, sc.now.Add(day).Unix()))
	sc.rounds(s, 10, nil)
	require.Equal(t, map[string]int{"fires": 1}, sc.copies())
	require.Len(t, sc.deadJobs(), 1)
	require.Contains(t, sc.deadJobs()[0], "expired")
	require.Equal(t, 2, sc.journaled()[wire.OpExpired], "one is buried, the other is in the journal only")
	require.Zero(t, s.entries.Total(wire.ScheduledJobs))
}

func TestCommandsThatChangeNothing(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandPing}).Status)
	none := int64(7)
	for _, cmd := range []wire.Command{
		{Command: wire.CommandDismiss, Stream: wire.Retries, Offset: &none},
		{Command: wire.CommandDelete, Stream: wire.Retries, JID: "unknown"},
		{Command: wire.CommandDelete, Stream: wire.Retries, JID: "unknown", Offset: &none},
	} {
		require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status, "%+v", cmd)
	}
	sc.at("later", "q", sc.now.Add(day))
	sc.rounds(s, 2, nil)
	require.Equal(t, wire.StatusBad, sc.ask(s, wire.Command{Command: "dance", Stream: wire.ScheduledJobs, JID: "later"}).Status)
	require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
}

func TestRejectedRecordsAreDismissed(t *testing.T) {
	sc := newScene(t)
	at := sc.broker.append(wire.Retries, "client", wire.Message{Body: []byte("garbage")})
	s := sc.leader("a")
	cmd := wire.Command{ID: "c", Command: wire.CommandDismiss, Stream: wire.Retries, Offset: &at}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, wire.Reply{Status: wire.StatusDone, Repeated: true}, sc.ask(s, cmd), "asked again under the same id")
	require.Equal(t, 1, sc.journaled()[wire.TypeDismissed])
	cmd.ID = "d"
	require.Equal(t, wire.StatusNotFound, sc.ask(s, cmd).Status)
}

// A jid names one entry. Where several entries share it, their offsets distinguish them. A
// repetition of the same publish is not an entry of its own.
func TestEntriesThatShareAJID(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	first := sc.at("twin", "q", sc.now.Add(day))
	sc.at("twin", "q", sc.now.Add(day)) // repeated
	other := sc.at("twin", "q", sc.now.Add(2*day))
	sc.rounds(s, 3, nil)
	reply := sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "twin"})
	require.Equal(t, wire.StatusConflict, reply.Status)
	require.Equal(t, []int64{first, other}, reply.Offsets)
	require.Equal(t, 1, sc.journaled()[wire.TypeDuplicate])
	reply = sc.ask(s, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "twin", Offset: &other})
	require.Equal(t, wire.StatusDone, reply.Status)
	reply = sc.ask(s, wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "twin"})
	require.Equal(t, wire.StatusDone, reply.Status)
	require.Equal(t, 1, sc.copies()["twin"])
}

// A command that the broker refuses is answered, and undone.
func TestCommandRefusedByBrokerIsUndone(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("later")
	sc.broker.nacks = func(m wire.Message) bool { return m.Exchange != "" }
	for _, command := range []string{wire.CommandTrigger, wire.CommandKill} {
		cmd := wire.Command{ID: command, Command: command, Stream: wire.ScheduledJobs, JID: "later"}
		require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status, command)
		require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs), "it is pending as before")
	}
	sc.broker.nacks = nil
	cmd := wire.Command{ID: wire.CommandKill, Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "later"}
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status, "the same request, repeated")
	require.Len(t, sc.deadJobs(), 1)
	require.Empty(t, sc.copies())
}

// A record that the journal refuses is written again. If the journal refuses for too long, the
// epoch ends.
func TestEpochEndsWhenJournalKeepsRefusing(t *testing.T) {
	sc := newScene(t)
	s := sc.leaderWith("later")
	refused := 0
	sc.broker.nacks = func(m wire.Message) bool {
		refused++
		return m.Key == wire.Journal && refused <= 3
	}
	var got wire.Reply
	cmd := wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "later"}
	require.NoError(t, s.core.command(sc.now, cmd, func(r wire.Reply) { got = r }))
	sc.rounds(s, 1, nil)
	require.Zero(t, got.Status, "not before it is confirmed")
	sc.rounds(s, 10, nil)
	require.Equal(t, wire.StatusDone, got.Status)
	require.Zero(t, s.entries.Total(wire.ScheduledJobs))

	sc.broker.nacks = func(m wire.Message) bool { return m.Key == wire.Journal }
	require.NoError(t, s.core.ledger.Append(wire.Journal, wire.JournalRecord{Type: wire.TypeConfirmed}, nil))
	require.ErrorContains(t, sc.ends(s), "the journal refused a record")
}

// ends lets a leader work until its epoch ends.
func (sc *scene) ends(s *modelSidecar) error {
	for range 1000 {
		sc.now = sc.now.Add(200 * time.Millisecond)
		if err := s.step(sc.now); err != nil {
			return err
		}
		for len(s.conn.out) > 0 {
			sc.broker.process(s.conn, sc.now)
		}
		for len(s.conn.answers) > 0 {
			if err := s.answer(sc.now); err != nil {
				return err
			}
		}
		require.NoError(sc.t, s.readAll())
	}
	sc.t.Fatal("the epoch does not end")
	return nil
}

// A message that cannot be sent is parked, and a command about it is answered.
func TestUnpublishableMessageIsParked(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	s.conn.unpublishable = func(m wire.Message) bool { return m.Exchange != "" }
	sc.due("due", "q")
	sc.at("killed", "q", sc.now.Add(day))
	sc.scheduled("expired", sc.now, `,"expires_at":1`)
	sc.rounds(s, 6, nil)
	cmd := wire.Command{Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
	require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status)
	cmd = wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "due"}
	require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status)
	for _, jid := range []string{"due", "killed", "expired"} {
		found, err := s.entries.Find(wire.ScheduledJobs, jid)
		require.NoError(t, err)
		require.Len(t, found, 1, jid)
		require.Contains(t, found[0].Parked, "the test says so", jid)
	}
	s.conn.unpublishable = nil
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 12, nil)
	found, err := s.entries.Find(wire.ScheduledJobs, "due")
	require.NoError(t, err)
	require.Contains(t, found[0].Parked, "the test says so", "it is parked at its new offset, too")
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, 1, sc.copies()["due"])
}

// Bodies that the view does not keep are fetched. While a fetch fails, the entry's queue waits. In
// the end the entry is parked. A record that is gone is reported without a wait.
func TestLargeEntriesAreFetched(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	large := `,"args":["` + strings.Repeat("x", 70<<10) + `"]`
	sc.scheduled("large", sc.now, large)
	failing := sc.scheduled("failing", sc.now, large)
	gone := sc.scheduled("gone", sc.now, large)
	fetched := map[int64]int{}
	s.fetch = func(stream string, offset int64) ([]byte, error) {
		fetched[offset]++
		switch offset {
		case failing:
			return nil, errors.New("no connection")
		case gone:
			return nil, nil
		}
		return sc.broker.streams[stream].get(offset).Body, nil
	}
	for range 400 {
		sc.now = sc.now.Add(2 * time.Second)
		sc.rounds(s, 1, nil)
	}
	require.Equal(t, map[string]int{"large": 1}, sc.copies())
	require.Equal(t, maxUnfetched, fetched[failing])
	for jid, reason := range map[string]string{"failing": "no connection", "gone": "cannot be read any more"} {
		found, err := s.entries.Find(wire.ScheduledJobs, jid)
		require.NoError(t, err)
		require.Contains(t, found[0].Parked, reason)
	}
	cmd := wire.Command{Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "failing"}
	require.Equal(t, wire.StatusUnavailable, sc.ask(s, cmd).Status)

	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 3, nil)
	require.NotNil(t, s.core.carry.run, "the carry-over does not end while a record cannot be fetched")
	s.fetch = func(stream string, offset int64) ([]byte, error) {
		if offset == gone {
			return nil, nil
		}
		return sc.broker.streams[stream].get(offset).Body, nil
	}
	for range 10 {
		sc.now = sc.now.Add(fetchAgain)
		sc.rounds(s, 3, nil)
	}
	require.Nil(t, s.core.carry.run)
	found, err := s.entries.Find(wire.ScheduledJobs, "gone")
	require.NoError(t, err)
	require.Empty(t, found, "there is nothing left of it")
	require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status)
	require.Equal(t, map[string]int{"large": 1, "failing": 1}, sc.copies())
}

// The next leader looks for a burial that was in flight among the dead jobs. If it is there, it is
// done. Otherwise its entry is pending again.
func TestBurialInDoubtIsReconciled(t *testing.T) {
	for name, arrives := range map[string]bool{"it arrived": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leaderWith("killed")
			cmd := wire.Command{ID: "c", Command: wire.CommandKill, Stream: wire.ScheduledJobs, JID: "killed"}
			require.NoError(t, s.core.command(sc.now, cmd, func(wire.Reply) {}))
			require.Len(t, s.conn.out, 1)
			if arrives {
				sc.broker.process(s.conn, sc.now)
			} else {
				sc.broker.append(wire.Journal, millrace, s.conn.out[0].message)
			}
			s.lose()
			require.NoError(t, s.restart())
			sc.elect(s, never)
			sc.rounds(s, 10, nil)
			require.Equal(t, phaseLeading, s.core.phase)
			found, err := s.entries.Find(wire.ScheduledJobs, "killed")
			require.NoError(t, err)
			require.Equal(t, arrives, len(found) == 0)
			require.Equal(t, wire.StatusDone, sc.ask(s, cmd).Status, "the same request, repeated")
			require.Len(t, sc.deadJobs(), 1)
			require.Equal(t, 1, sc.journaled()[wire.TypeKilled], "the kill is journaled, by the next leader if necessary")
			require.Equal(t, wire.StatusOK, sc.ask(s, wire.Command{Command: wire.CommandUndo, Stream: wire.ScheduledJobs, JID: "killed"}).Status)
			require.Zero(t, s.entries.Total(wire.DeadJobs))
			require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs))
		})
	}
}

// The trace context stays with a job when it is carried over and when it is fired.
func TestTraceSurvivesCarryOverAndFire(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.scheduled("traced", sc.now.Add(time.Minute), "")
	sc.rounds(s, 2, nil)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 12, nil)
	require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
	sc.now = sc.now.Add(2 * time.Minute)
	var trace any
	sc.rounds(s, 1, func(m wire.Message) bool {
		if _, fired := wire.DispatchOf(m.Headers); fired {
			trace = m.Headers[wire.HeaderTraceparent]
		}
		return false
	})
	require.Equal(t, "00-trace", trace)
}

// Each leader applies the configured action to held entries.
func TestOnGapSettingNeedsNoOperator(t *testing.T) {
	for onGap, fires := range map[string]int{"hold": 0, "fire": 3, "discard": 0} {
		t.Run(onGap, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			for i := range 3 {
				sc.at(fmt.Sprint("due-", i), "q", sc.now)
			}
			sc.broker.streams[wire.Journal] = &modelStream{generation: 1}
			s.disconnect()
			sc.elect(s, never)
			s.core.setup.onGap = onGap
			sc.rounds(s, 60, nil)
			require.Len(t, sc.copies(), fires)
			require.Equal(t, onGap == "hold", len(s.entries.State().Held) > 0)
			require.Equal(t, onGap == "hold", s.entries.Total(wire.ScheduledJobs) > 0)
		})
	}
}

// While something is held, nothing is carried over. A release ends the hold. Only one release may
// run at a time.
func TestHoldIsEndedOnce(t *testing.T) {
	for _, command := range []string{wire.CommandRelease, wire.CommandDiscard} {
		t.Run(command, func(t *testing.T) {
			sc := newScene(t)
			s := sc.leader("a")
			for i := range 300 {
				sc.at(fmt.Sprint("due-", i), "q", sc.now.Add(2*time.Second))
			}
			sc.at("later", "q", sc.now.Add(day))
			sc.broker.streams[wire.Journal] = &modelStream{generation: 1}
			s.disconnect()
			sc.elect(s, never)
			sc.rounds(s, 20, nil)
			require.Equal(t, phaseLeading, s.core.phase)
			require.Empty(t, sc.copies())
			require.Contains(t, s.entries.State().Why, "deleted")
			require.NoError(t, s.core.beginCarry(0))
			require.Nil(t, s.core.carry.run)
			for _, what := range []string{wire.CommandChange, wire.CommandTrigger} { // a change would let it fire; a user may trigger it
				cmd := wire.Command{Command: what, Stream: wire.ScheduledJobs, JID: "due-1", Changes: json.RawMessage(`{"queue":"q"}`)}
				require.Equal(t, what == wire.CommandTrigger, sc.ask(s, cmd).Status == wire.StatusDone, what)
			}
			var first wire.Reply
			require.NoError(t, s.core.command(sc.now, wire.Command{ID: "1", Command: command}, func(r wire.Reply) { first = r }))
			for _, second := range []string{wire.CommandRelease, wire.CommandDiscard} {
				require.Equal(t, wire.StatusConflict, func() (got int) {
					require.NoError(t, s.core.command(sc.now, wire.Command{Command: second}, func(r wire.Reply) { got = r.Status }))
					return got
				}())
			}
			sc.rounds(s, 40, nil)
			require.Equal(t, wire.StatusDone, first.Status)
			require.Empty(t, s.entries.State().Held)
			require.Equal(t, 1, sc.journaled()[wire.TypeLowWater])
			require.EqualValues(t, 1, s.entries.Total(wire.ScheduledJobs), "the entry that is due later")
			want := 300
			if command == wire.CommandDiscard {
				want = 1
			}
			require.Len(t, sc.copies(), want)
			fresh := sc.sidecar("fresh")
			require.NoError(t, fresh.readAll())
			require.Empty(t, fresh.entries.State().Gap(0))
			require.EqualValues(t, 1, fresh.entries.Total(wire.ScheduledJobs))
		})
	}
}

// Any time can be the due time of a job, also the zero time.
func TestJobThatIsDueAtZeroTime(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.at("old", "q", time.Time{})
	sc.rounds(s, 4, nil)
	require.Equal(t, map[string]int{"old": 1}, sc.copies())
}
