package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// maxPaused bounds how many queues can be paused: each record about them has them all.
const maxPaused = 1000

// pause journals that a queue is paused, or not any more, and tells the workers. One such command is carried out after the other: each record
// has all queues, and must know of the one before. A queue that is as it should be has its workers told again, so repeating helps.
func (c *core) pause(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	if c.pausing {
		c.pauses = append(c.pauses, func() error { return c.pause(now, cmd, answer) })
		return nil
	}
	all := c.entries.Paused()
	_, is := all[cmd.Queue]
	switch {
	case is == (cmd.Command == wire.CommandPause):
		return c.tellWorkers(now, cmd, answer)
	case is:
		delete(all, cmd.Queue)
	case len(all) >= maxPaused:
		answer(conflict(fmt.Sprintf("%d queues are paused, which is the most", maxPaused)))
		return nil
	default:
		if all == nil {
			all = map[string]wire.Pause{}
		}
		all[cmd.Queue] = wire.Pause{At: wire.Seconds(now), Actor: cmd.Actor, Reason: cmd.Reason}
	}
	c.pausing = true
	r := wire.JournalRecord{Type: wire.TypeState, Queue: cmd.Queue, Paused: &all, Actor: cmd.Actor, Reason: cmd.Reason}
	return c.recordFolded(now, r, func() error {
		c.pausing = false
		if err := c.tellWorkers(now, cmd, answer); err != nil {
			return err
		}
		return c.nextPauses()
	})
}

// nextPauses carries out what waited, in its order, before anything that comes now: up to the first that needs a record again.
func (c *core) nextPauses() error {
	for len(c.pauses) > 0 && !c.pausing {
		next := c.pauses[0]
		c.pauses = c.pauses[1:]
		if err := next(); err != nil {
			return err
		}
	}
	return nil
}

// tellWorkers has every worker process pause or resume a queue, and answers once the broker has taken that.
func (c *core) tellWorkers(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	said := wire.Controls{ID: random(), Op: wire.ControlPause, Identity: "*", Queue: cmd.Queue, At: wire.Seconds(now), Actor: cmd.Actor, Reason: cmd.Reason}
	if cmd.Command == wire.CommandResume {
		said.Op = wire.ControlResume
	}
	return c.send(&item{plain: true, build: func(int64, int64) wire.Message { return said.Message(now) }, done: func(bool) {
		answer(wire.Reply{Status: wire.StatusDone})
	}})
}

// tellPaused tells the workers again what is paused: those that asked while nobody led have no answer.
func (c *core) tellPaused(now time.Time) error {
	for _, queue := range slices.Sorted(maps.Keys(c.entries.Paused())) {
		cmd := wire.Command{Command: wire.CommandPause, Queue: queue}
		if err := c.tellWorkers(now, cmd, func(wire.Reply) {}); err != nil {
			return err
		}
	}
	return nil
}

// state tells a worker that starts what is paused.
func (c *core) state() wire.Reply {
	paused := slices.Sorted(maps.Keys(c.entries.Paused()))
	if paused == nil {
		paused = []string{}
	}
	return wire.Reply{Status: wire.StatusOK, Paused: paused}
}

// carryState writes down again what the journal alone knows, at its end: low water would forget it. Nothing newer is on its way.
func (c *core) carryState(now time.Time) error {
	all := c.entries.Paused()
	if all == nil {
		all = map[string]wire.Pause{}
	}
	return c.record(now, wire.JournalRecord{Type: wire.TypeState, Paused: &all}, spot{}, nil)
}
