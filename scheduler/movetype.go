package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A broker cannot change the type of a queue that exists. So a job queue is moved to another type:
//
//   1. Nothing more is fired to it, and workers are asked to stop consuming it.
//   2. It is unbound. What clients publish for it becomes entries of jobs.gated.
//   3. Its messages are moved to jobs.gated. Nothing can be added to it, so once the broker
//      counts it as empty it stays empty.
//   4. It is deleted, declared as the new type, and bound. What is in jobs.gated is fired.
//
// If a step before the deletion fails, the queue is bound as it was. In any case the workers resume
// it at the end. A leader that ends during a move leaves a record that the queue is paused for it:
// the next leader declares and binds the queue, and has the workers resume it.

const (
	moveLookEvery  = 500 * time.Millisecond
	movePlanWithin = 4 * time.Second // the command's answer is waited for that long
	maxMoves       = 4               // at the same time
	maxEndedMoves  = 1000            // whose outcome is remembered

	// moveSettled is for how long the management API must call a queue empty. What the API says is
	// up to ten seconds old: RabbitMQ collects statistics in two steps, each of them every five
	// seconds.
	moveSettled = 12 * time.Second
)

// mover moves queues to another type. What it has belongs to the loop that fires.
type mover struct {
	l   *leadership
	do  chan func() error // steps of moves that are done in the loop
	all map[string]*typeMove
}

func newMover(l *leadership) *mover {
	return &mover{l: l, do: make(chan func() error), all: map[string]*typeMove{}}
}

// typeMove is one move. It runs beside the loop.
type typeMove struct {
	m        *mover
	cmd      wire.Command
	full     string // the queue's name on the broker
	deadline time.Time
	from     broker.QueueType
	bad      badBodies

	shown wire.TypeMove // the loop's
	ended bool          // the loop's
	fault error         // the loop's: why it was undone
}

// steps is where steps of moves come from, once they can be done.
func (m *mover) steps() <-chan func() error {
	if !m.l.mayAct() {
		return nil
	}
	return m.do
}

// inLoop has something done in the loop that fires, and returns when it was. An error of fn ends
// the epoch.
func (m *mover) inLoop(ctx context.Context, fn func() error) error {
	done := make(chan struct{})
	step := func() error {
		defer close(done)
		return fn()
	}
	select {
	case m.do <- step:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// command plans a move, begins one, or answers how far one is.
func (m *mover) command(cmd wire.Command, answer func(wire.Reply)) {
	running := 0
	for queue, mv := range m.all {
		if !mv.ended {
			running++
		} else if len(m.all) > maxEndedMoves {
			delete(m.all, queue)
		}
	}
	mv := m.all[cmd.Queue]
	switch {
	case cmd.DryRun:
		m.l.beside(func(ctx context.Context) {
			plan, err := m.plan(ctx, cmd)
			if err != nil {
				answer(refusedMove(err))
				return
			}
			answer(wire.Reply{Status: wire.StatusOK, Move: &plan})
		})
	case mv != nil && !mv.ended && mv.cmd.Type != cmd.Type:
		answer(conflict(fmt.Sprintf("queue %q is being moved to type %s", cmd.Queue, mv.cmd.Type)))
	case mv != nil && (!mv.ended || mv.cmd.ID == cmd.ID):
		answer(mv.reply())
	case running >= maxMoves:
		answer(conflict(fmt.Sprintf("%d queues are being moved, which is the most at the same time", running)))
	case m.l.core.copies.held:
		answer(conflict("what an older version left in jobs.unrouted is not moved yet: try again later"))
	default:
		mv = m.add(cmd)
		m.l.beside(func(ctx context.Context) { mv.run(ctx, answer) })
	}
}

func (m *mover) add(cmd wire.Command) *typeMove {
	within := wire.MoveWithin
	if cmd.Within > 0 {
		within = time.Duration(cmd.Within * float64(time.Second))
	}
	mv := &typeMove{m: m, cmd: cmd, full: wire.QueuePrefix + cmd.Queue, deadline: time.Now().Add(within), bad: badBodies{},
		shown: wire.TypeMove{ID: cmd.ID, Queue: cmd.Queue, To: cmd.Type, State: wire.MoveRuns, Step: "looking at the queue"}}
	m.all[cmd.Queue] = mv
	return mv
}

// undoOthers undoes the moves that earlier leaders began and did not end.
func (m *mover) undoOthers() {
	for queue, p := range m.l.core.entries.Paused() {
		if p.Move == nil {
			continue
		}
		mv := m.add(wire.Command{Queue: queue, Type: p.Move.To, Actor: p.Actor})
		mv.shown.Step = "undoing the move that an earlier leader began"
		m.l.beside(func(ctx context.Context) {
			if mv.finish(ctx) == nil {
				m.l.s.log.Warn("scheduler: a leader ended while it moved a queue to another type: the queue is bound again, run the command again",
					"queue", queue, "type", p.Move.To)
			}
			_ = m.inLoop(ctx, func() error {
				delete(m.all, queue)
				return nil
			})
		})
	}
}

func (mv *typeMove) reply() wire.Reply {
	shown := mv.shown
	switch {
	case mv.fault != nil:
		r := conflict(mv.fault.Error()) // repeating the command with this id begins nothing
		r.Move = &shown
		return r
	case mv.ended:
		return wire.Reply{Status: wire.StatusOK, Move: &shown}
	}
	return wire.Reply{Status: wire.StatusAccepted, Move: &shown}
}

// errMove says why a queue is not moved: it is no fault of the broker's that passes.
type errMove struct{ error }

func notMoved(format string, a ...any) error { return errMove{fmt.Errorf(format, a...)} }

func refusedMove(err error) wire.Reply {
	var refused errMove
	switch {
	case errors.As(err, &refused):
		return conflict(refused.Error())
	case broker.IsMissing(err):
		return notFound("there is no such queue")
	}
	return unavailable(err.Error())
}

// plan returns what a move would do, or why it cannot be done.
func (m *mover) plan(ctx context.Context, cmd wire.Command) (wire.TypeMove, error) {
	ctx, cancel := context.WithTimeout(ctx, movePlanWithin)
	defer cancel()
	mgmt, to := m.l.s.mgmt, broker.QueueType(cmd.Type)
	full := wire.QueuePrefix + cmd.Queue
	plan := wire.TypeMove{Queue: cmd.Queue, To: cmd.Type, State: wire.MovePlanned, Arguments: broker.ArgumentsOf(to), Dropped: map[string]any{}}
	ready, consumers, err := m.l.conn.Queues().Depth(ctx, full)
	if err != nil {
		return plan, err
	}
	if mgmt == nil {
		return plan, notMoved("the leader has no management API: it says how many jobs are unacknowledged at workers")
	}
	q, _, err := mgmt.Queue(ctx, full)
	if err != nil {
		return plan, err
	}
	if err := m.l.conn.Features().CheckMove(q, to); err != nil {
		return plan, notMoved("queue %q: %w", cmd.Queue, err)
	}
	elsewhere, err := mgmt.BoundElsewhere(ctx, full)
	if err != nil {
		return plan, err
	}
	if len(elsewhere) > 0 {
		return plan, notMoved("queue %q is bound to %q too, from where messages would be lost meanwhile: unbind it first", cmd.Queue, elsewhere)
	}
	plan.From, plan.Node, plan.Ready, plan.Unacked, plan.Consumers = q.Type, q.Node, int64(ready), q.Unacked, int64(consumers)
	for name, value := range q.Arguments {
		if _, kept := plan.Arguments[name]; !kept && name != "x-queue-type" && name != "x-max-priority" {
			plan.Dropped[name] = value
		}
	}
	return plan, nil
}

// run moves the queue. It answers once it has begun, or cannot.
func (mv *typeMove) run(ctx context.Context, answer func(wire.Reply)) {
	plan, err := mv.m.plan(ctx, mv.cmd)
	mv.from = broker.QueueType(plan.From)
	is := err == nil && plan.From == plan.To
	if is { // an earlier move may have ended before it was bound
		err = mv.m.l.s.ensure(ctx, mv.m.l.conn, mv.cmd.Queue)
	}
	refused := err
	err = mv.m.inLoop(ctx, func() error {
		if refused != nil {
			delete(mv.m.all, mv.cmd.Queue)
			answer(refusedMove(refused))
			return nil
		}
		plan.ID, plan.State, plan.Step = mv.cmd.ID, mv.shown.State, mv.shown.Step
		if mv.shown = plan; is {
			mv.end(nil)
		}
		answer(mv.reply())
		return nil
	})
	if refused != nil || is || err != nil {
		return
	}
	if err = mv.work(ctx); err != nil && ctx.Err() == nil {
		mv.m.l.s.log.Warn("scheduler: a queue is not moved to another type", "queue", mv.cmd.Queue, "type", mv.cmd.Type, "error", err)
	}
	if finished := mv.finish(ctx); finished != nil {
		return // the next leader does it
	}
	_ = mv.m.inLoop(ctx, func() error {
		mv.end(err)
		return nil
	})
}

func (mv *typeMove) end(fault error) {
	mv.ended, mv.fault, mv.shown.Step = true, fault, ""
	if fault == nil {
		mv.shown.State = wire.MoveDone
	}
}

// step says what is done now.
func (mv *typeMove) step(ctx context.Context, format string, a ...any) error {
	return mv.m.inLoop(ctx, func() error {
		mv.shown.Step = fmt.Sprintf(format, a...)
		return nil
	})
}

// work does all that a move takes but what finish does.
func (mv *typeMove) work(ctx context.Context) error {
	l := mv.m.l
	for _, do := range []func(context.Context) error{mv.note, mv.hold, mv.pause} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	l.s.noteUnbound(mv.cmd.Queue)
	if err := l.conn.Queues().Unbind(ctx, mv.cmd.Queue); err != nil {
		return err
	}
	for again := true; again; {
		var err error
		if again, err = mv.empty(ctx); err != nil {
			return err
		}
	}
	return mv.declare(ctx)
}

// note has the journal say who moves the queue and why.
func (mv *typeMove) note(ctx context.Context) error {
	return mv.ask(ctx, func(answer func(wire.Reply)) error {
		noted := &wire.Noted{Op: wire.NotedRetyped, Queue: mv.cmd.Queue, To: mv.cmd.Type, Count: mv.shown.Ready}
		return mv.m.l.core.actions.note(time.Now(), request{mv.cmd, answer}, wire.JournalRecord{Type: wire.TypeNoted, Noted: noted}, ledger.EntryID{})
	})
}

// pause journals that the queue is paused for the move, and has workers pause it.
func (mv *typeMove) pause(ctx context.Context) error { return mv.pauseOrResume(ctx, wire.CommandPause) }

func (mv *typeMove) pauseOrResume(ctx context.Context, verb string) error {
	cmd := wire.Command{Command: verb, Queue: mv.cmd.Queue, Actor: mv.cmd.Actor, Reason: mv.because(), Move: &wire.PauseMove{To: mv.cmd.Type}}
	return mv.ask(ctx, func(answer func(wire.Reply)) error {
		return mv.m.l.core.pauses.carryOut(time.Now(), request{cmd, answer})
	})
}

func (mv *typeMove) because() string { return "it is being moved to type " + mv.cmd.Type }

// ask has the core do something, and waits for its answer.
func (mv *typeMove) ask(ctx context.Context, do func(answer func(wire.Reply)) error) error {
	said := make(chan wire.Reply, 1)
	if err := mv.m.inLoop(ctx, func() error { return do(func(r wire.Reply) { said <- r }) }); err != nil {
		return err
	}
	select {
	case r := <-said:
		if r.Status != wire.StatusDone {
			return notMoved("%s", r.Reason)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold has nothing more fired to the queue, and waits until what was fired is confirmed.
func (mv *typeMove) hold(ctx context.Context) error {
	for {
		open := 0
		err := mv.m.inLoop(ctx, func() error {
			open = mv.m.l.core.queues.holdForMove(time.Now(), mv.cmd.Queue, mv.because())
			mv.shown.Step = "waiting for confirms of jobs that were delivered"
			return nil
		})
		switch {
		case err != nil || open == 0:
			return err
		case time.Now().After(mv.deadline):
			return notMoved("%s that were delivered to it were not confirmed in time", wire.Counted(int64(open), "job"))
		}
		if err := pause.For(ctx, moveLookEvery/10); err != nil {
			return err
		}
	}
}

// finish binds the queue, of either type, has jobs fired to it, and has the workers
// resume it.
func (mv *typeMove) finish(ctx context.Context) error {
	l := mv.m.l
	retry := pause.Growing(longestPause)
	for {
		within, cancel := context.WithTimeout(ctx, bindWithin)
		err := l.s.ensure(within, l.conn, mv.cmd.Queue)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.s.log.Warn("scheduler: cannot bind a queue again", "queue", mv.cmd.Queue, "error", err)
		if err := pause.For(ctx, retry.NextBackOff()); err != nil {
			return err
		}
	}
	l.s.readQueues(ctx)
	now := l.s.readProof(ctx, false, listQueuesWithin)
	err := mv.m.inLoop(ctx, func() error {
		if now.known != nil {
			l.proof.known = now.known // it may have another window
		}
		l.core.queues.endMove(mv.cmd.Queue)
		return nil
	})
	if err != nil {
		return err
	}
	return mv.pauseOrResume(ctx, wire.CommandResume)
}
