package scheduler

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// chores are all the duties that a leader can have. They are requested again and again.
type chores struct {
	sc   *scene
	asks []wire.Command
	n    int // how often
}

// add appends entries and chooses commands about them.
func (c *chores) add() {
	n := c.n
	c.n++
	name := func(what string) string { return fmt.Sprint(what, "-", n) }
	sc := c.sc
	sc.due(name("fires"), "q")
	sc.due(name("twin"), "q")
	sc.due(name("twin"), "q")
	sc.scheduled(name("expired"), sc.now, `,"expires_at":1`)
	sc.scheduled(name("dropped"), sc.now, `,"expires_at":1,"dead":false`)
	ask := func(command, what string) *wire.Command {
		sc.at(name(what), "q", sc.now.Add(day))
		c.asks = append(c.asks, wire.Command{ID: name(what), Command: command, Stream: wire.ScheduledJobs, JID: name(what)})
		return &c.asks[len(c.asks)-1]
	}
	ask(wire.CommandTrigger, "triggered")
	ask(wire.CommandDelete, "deleted")
	ask(wire.CommandKill, "killed")
	ask(wire.CommandChange, "changed").Changes = json.RawMessage(`{"queue":"other"}`)
	for _, what := range []string{"one", "two", "two"} {
		sc.at(name(what), "q", sc.now.Add(day))
	}
	c.asks = append(c.asks, wire.Command{ID: name("op"), Command: wire.CommandOperate,
		Bulk: &wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, JIDs: []string{name("one"), name("two")}}})
}

// lead has a sidecar lead through some rounds, with all that was ever requested, or until its
// connection dies.
func (c *chores) lead(s *modelSidecar, rounds int) error {
	sc := c.sc
	asked := false
	for range rounds {
		sc.now = sc.now.Add(200 * time.Millisecond)
		if err := s.step(sc.now); err != nil {
			return err
		}
		if s.core.phase == phaseLeading && !asked {
			asked = true
			for _, cmd := range c.asks {
				if err := s.core.command(sc.now, cmd, func(wire.Reply) {}); err != nil {
					return err
				}
			}
			if err := s.core.beginCarry(0); err != nil {
				return err
			}
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
	return nil
}

// A connection dies at the first publish of an epoch, at the second of the next, and so on. Each
// loss ends the epoch and nothing else. A due job fires once. A command that is repeated until it
// is answered is executed once.
func TestConnectionLostAtAnyPublish(t *testing.T) {
	sc := newScene(t)
	s := sc.sidecar("a")
	c := &chores{sc: sc}
	process := &Scheduler{}
	epochs := 0
	for died := true; died; epochs++ {
		require.Less(t, epochs, 300, "no epoch is completed")
		if epochs < 60 && epochs%3 == 0 { // each requests some publishes, for ever: pending and finished ones are carried over
			c.add()
		}
		sc.elect(s, never)
		published := 0
		s.conn.dies = func() bool { published++; return published > epochs }
		err := c.lead(s, 40)
		if died = err != nil; !died {
			break
		}
		require.ErrorIs(t, err, broker.ErrLost)
		for len(s.conn.out) > 0 && epochs%2 == 0 { // what was sent before may have arrived
			sc.broker.process(s.conn, sc.now)
		}
		process.remember(s.core, false)
		s.lose()
		s.known, s.suspect = process.known, process.suspects
	}
	require.Greater(t, epochs, 40)
	s.conn.dies = nil
	for _, cmd := range c.asks {
		require.Less(t, sc.ask(s, cmd).Status, 300, "%+v", cmd)
	}
	sc.rounds(s, 30, nil)

	copies, buried := sc.copies(), map[string]int{}
	for _, body := range sc.deadJobs() {
		e, err := wire.ParseEntry(wire.DeadJobs, 0, []byte(body))
		require.NoError(t, err)
		buried[e.JID]++
	}
	for n := range c.n {
		name := func(what string) string { return fmt.Sprint(what, "-", n) }
		for _, what := range []string{"fires", "twin", "triggered"} {
			require.Equal(t, 1, copies[name(what)], name(what))
		}
		for _, what := range []string{"expired", "killed"} {
			require.Equal(t, 1, buried[name(what)], name(what))
		}
	}
	require.Len(t, copies, 3*c.n, "nothing else fired")
	require.Len(t, buried, 2*c.n, "nothing else died")
	require.Equal(t, map[string]int64{"other": int64(c.n)}, s.entries.ByQueue(wire.ScheduledJobs), "only the changed entries are pending")
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
}
