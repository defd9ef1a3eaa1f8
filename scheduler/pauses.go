package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// maxPaused is how many queues may be paused: each record names all of them.
const maxPaused = 1000

// pauses carries out the commands that pause and resume queues, one after the other. Each record
// names all paused queues, so it must be based on the one before.
type pauses struct {
	base
	sending bool // a record is on its way
	waiting []waitingPause
}

// waitingPause is a command that waits until the record before it is read back.
type waitingPause struct {
	at time.Time
	request
}

// carryOut journals that a queue is paused or resumed, and notifies the workers. If the queue is so
// already, it notifies them again.
func (p *pauses) carryOut(now time.Time, r request) error {
	if p.sending {
		p.waiting = append(p.waiting, waitingPause{now, r})
		return nil
	}
	cmd := &r.cmd
	all := p.entries.Paused()
	before, is := all[cmd.Queue]
	if is && before.Move != nil && cmd.Command == wire.CommandResume && cmd.Move == nil {
		return r.reply(conflict(fmt.Sprintf("queue %q is being moved to another type, and is resumed when that has ended", cmd.Queue)))
	}
	after, paused := pausedAfter(now, before, is, *cmd)
	if cmd.Command = wire.CommandResume; paused {
		cmd.Command = wire.CommandPause
	}
	unchanged := is == paused && after == before
	switch {
	case unchanged: // only the workers are notified
	case !paused:
		delete(all, cmd.Queue)
	case !is && len(all) >= maxPaused:
		return r.reply(conflict(fmt.Sprintf("%d queues are paused, which is the most", maxPaused)))
	default:
		if all == nil {
			all = map[string]wire.Pause{}
		}
		all[cmd.Queue] = after
	}
	p.sending = true
	record := wire.JournalRecord{Type: wire.TypeState, Queue: cmd.Queue, Paused: &all, Actor: cmd.Actor, Reason: cmd.Reason}
	if cmd.Move != nil {
		record.Queue = "" // the move has a record of its own
	}
	if unchanged {
		// Another leader may have changed it. This one learns that before it reads the record back.
		record = p.ledger.Progress()
	}
	return p.ledger.RecordThen(now, record, ledger.EntryID{}, func() error {
		if err := p.notify(now, r); err != nil {
			return err
		}
		return p.readBack()
	})
}

// pausedAfter returns how a queue is paused after a command, and whether it is. A move to another
// type pauses it too. It stays paused after the move if it was paused before or meanwhile.
func pausedAfter(now time.Time, p wire.Pause, is bool, cmd wire.Command) (wire.Pause, bool) {
	begun := wire.Pause{At: wire.Seconds(now), Actor: cmd.Actor, Reason: cmd.Reason, Move: cmd.Move}
	moving := p.Move
	switch pauses := cmd.Command == wire.CommandPause; {
	case pauses && !is:
		return begun, true
	case pauses && cmd.Move != nil:
		p.Move = &wire.PauseMove{To: cmd.Move.To, Paused: moving == nil || moving.Paused}
	case pauses && moving != nil && !moving.Paused:
		begun.Move = &wire.PauseMove{To: moving.To, Paused: true}
		return begun, true
	case pauses:
	case cmd.Move == nil || !is:
		return wire.Pause{}, false
	default:
		p.Move = nil
		return p, moving == nil || moving.Paused
	}
	return p, true
}

// next carries out the commands that waited, up to the first that needs a record.
func (p *pauses) next() error {
	for len(p.waiting) > 0 && !p.sending {
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		if err := p.carryOut(next.at, next.request); err != nil {
			return err
		}
	}
	return nil
}

// notify asks each worker process to pause or resume a queue, and answers when the broker has taken
// that.
func (p *pauses) notify(now time.Time, r request) error {
	cmd := &r.cmd
	said := wire.Controls{ID: random(), Op: wire.ControlPause, Identity: "*", Queue: cmd.Queue, At: wire.Seconds(now), Actor: cmd.Actor, Reason: cmd.Reason}
	if cmd.Command == wire.CommandResume {
		said.Op = wire.ControlResume
	}
	return p.ledger.Send(&ledger.Publish{Plain: true, Build: func(int64, int64) wire.Message { return said.Message(now) },
		Confirmed: func() { _ = r.done() }})
}

// notifyAgain notifies the workers of what is paused. A worker that asked while there was no leader
// has no answer.
func (p *pauses) notifyAgain(now time.Time) error {
	for _, queue := range slices.Sorted(maps.Keys(p.entries.Paused())) {
		cmd := wire.Command{Command: wire.CommandPause, Queue: queue}
		if err := p.notify(now, request{cmd, func(wire.Reply) {}}); err != nil {
			return err
		}
	}
	return nil
}

// state answers a worker that starts: what is paused, and that it must claim what earlier leaders
// fired.
func (p *pauses) state(_ time.Time, r request) error {
	paused := slices.Sorted(maps.Keys(p.entries.Paused()))
	if paused == nil {
		paused = []string{}
	}
	return r.reply(wire.Reply{Status: wire.StatusOK, Paused: paused, ClaimBelow: p.ledger.Epoch()})
}

// carry writes again what is paused, at the end of the journal, because low water would forget it.
func (p *pauses) carry(now time.Time) error {
	all := p.entries.Paused()
	if all == nil {
		all = map[string]wire.Pause{}
	}
	p.sending = true // a record that is sent again would undo what was paused or resumed in between
	return p.ledger.RecordThen(now, wire.JournalRecord{Type: wire.TypeState, Paused: &all}, ledger.EntryID{}, p.readBack)
}

// readBack lets the next command begin.
func (p *pauses) readBack() error {
	p.sending = false
	return p.next()
}
