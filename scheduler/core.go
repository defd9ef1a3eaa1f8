package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// core is one epoch of a leader, as a state machine. It reads the view, publishes through a ledger,
// and takes in confirms, commands and the time. It does no I/O of its own, so tests can drive it
// through anything that a broker may do.
type core struct {
	base
	phase phase
	beginning
	firing
	asked
	carry   carrier
	trimmer trimmer
}

// beginning is what an epoch does before it leads, and what it learns late about the past.
type beginning struct {
	opening    opening
	reconciler reconciler
	lateFires  lateFires
}

// firing delivers jobs to their queues, and checks that they arrive.
type firing struct {
	queues     dueQueues
	dispatcher dispatcher
	copies     copies
	unrouted   unrouted
	limits     limits
	governed   governed
	silence    silence
	routing    routing
	announcer  announcer
}

// asked is what users and clients ask for.
type asked struct {
	commands   commands
	actions    actions
	changes    changes
	enqueues   enqueues
	undos      undos
	operations operations
	pauses     pauses
	periodics  periodics
	gap        gap
	claims     claims
	uniques    uniques
}

// errIndeterminate ends an epoch. The next one reads in the stream whether the entry was written.
var errIndeterminate = errors.New("scheduler: a stream refused an entry that stands for another, and may still have it")

// errFenced ends an epoch: another leader has begun one.
var errFenced = errors.New("scheduler: another leader has followed")

// phase is how far an epoch is.
type phase int

const (
	phaseOpening     phase = iota // the opened record is on its way
	phaseCatchingUp               // barriers are on their way
	phaseRouting                  // it is being looked whether what is fired reaches its queue
	phaseWitness                  // it is being looked whether the broker restarted
	phaseReconciling              // entries in doubt of earlier epochs are settled
	phaseReconciled               // all are; a witness is wanted
	phaseBeginning                // its record is on its way
	phaseLeading
)

func (p phase) String() string {
	return [...]string{"opening", "catching up", "looking", "settling", "settling", "settling", "settling", "leading"}[p]
}

// newCore returns a core in its first phase. An error of the port that wraps
// broker.ErrUnpublishable is about one message; any other ends the epoch.
func newCore(entries *tracker.Reader, p ledger.Port, s setup) *core {
	c := &core{}
	b := base{entries: entries, setup: &s, counters: &Counters{}}
	b.ledger = ledger.New(ledger.Config{Port: p, View: entries, Suspects: s.suspects, Unanswered: s.left.unanswered, Room: c.room, Took: b.counters.Confirms.note})
	c.base, c.trimmer = b, trimmer{base: b}
	c.firing = firing{
		queues: dueQueues{base: b, all: map[string]*dueQueue{}, came: func(first tracker.DueKey) { c.dispatcher.instant.cameBack(first) }},
		dispatcher: dispatcher{base: b, queues: &c.queues, routing: &c.routing, copies: &c.copies, unrouted: &c.unrouted, limits: &c.limits,
			unfetched: map[ledger.EntryID]int{}},
		limits:    limits{base: b, ahead: ahead{base: b}},
		governed:  governed{base: b, periodics: &c.periodics, said: map[string]wire.Restated{}},
		copies:    copies{base: b, dispatcher: &c.dispatcher, unrouted: &c.unrouted},
		unrouted:  newUnrouted(b, s.left.unrouted),
		silence:   silence{base: b, queues: &c.queues},
		routing:   routing{base: b},
		announcer: announcer{base: b, routing: &c.routing},
	}
	c.beginning = beginning{
		opening:    opening{base: b},
		reconciler: reconciler{base: b, dispatcher: &c.dispatcher, copies: &c.copies, reentry: reentry{base: b}},
		lateFires:  lateFires{base: b, reconciler: &c.reconciler, seen: entries.Late()},
	}
	c.asked = asked{
		commands: commands{base: b, queues: &c.queues, reconciler: &c.reconciler, dispatcher: &c.dispatcher, actions: &c.actions, verbs: c.verbs(), waiting: map[string][]func(wire.Reply){}},
		actions:  actions{base: b, dispatcher: &c.dispatcher, changes: &c.changes, uniques: &c.uniques},
		changes:  changes{base: b, enqueues: &c.enqueues, periodics: &c.periodics, replacing: map[ledger.EntryID]*replacement{}},
		enqueues: enqueues{base: b, carry: &c.carry, enqueuing: map[string]*enqueuing{}},
		undos:    undos{base: b, changes: &c.changes, operations: &c.operations, uniques: &c.uniques},
		operations: operations{base: b, queues: &c.queues, routing: &c.routing, dispatcher: &c.dispatcher, changes: &c.changes, actions: &c.actions,
			undos: &c.undos, carry: &c.carry, all: map[string]*operation{}},
		pauses:    pauses{base: b},
		periodics: periodics{base: b, carry: &c.carry, making: map[string]*making{}},
		gap:       gap{base: b, carry: &c.carry},
		claims:    claims{base: b, pending: map[string]*claim{}},
		uniques: uniques{base: b, rests: func() bool { return c.carry.rests() }, replacing: func(key wire.UniqueID) bool { return c.changes.takesKey(key) },
			look: func(s *tracker.Stored) {
				c.dispatcher.lookFrom(s, tracker.DueKey{At: s.At, Stream: s.Stream, Offset: s.Offset})
			}},
	}
	c.carry = carrier{base: b, operations: &c.operations, pauses: &c.pauses, periodics: &c.periodics, changes: &c.changes, enqueues: &c.enqueues, limits: &c.limits, governed: &c.governed,
		uniques: &c.uniques, gap: &c.gap}
	return c
}

// room reports whether more may be fired.
func (c *core) room() bool { return c.routing.room() && c.unrouted.room() }

func (c *core) leftovers() leftovers { return leftovers{c.ledger.Unanswered(), c.unrouted.waiting} }

// verbs returns what carries out the commands that are not about one entry.
func (c *core) verbs() map[string]verb {
	return map[string]verb{
		wire.CommandPing:    ping,
		wire.CommandState:   c.pauses.state,
		wire.CommandRelease: c.gap.beginRelease,
		wire.CommandDiscard: c.gap.beginDiscard,
		wire.CommandEnqueue: c.enqueues.command,
		wire.CommandPause:   c.pause,
		wire.CommandResume:  c.pause,
		wire.CommandDefine:  c.governed.define,
		wire.CommandForget:  c.periodics.command,
		wire.CommandRun:     c.periodics.command,
		wire.CommandSkip:    c.periodics.command,
		wire.CommandClaim:   c.claims.command,
		wire.CommandFree:    c.limits.command,
		wire.CommandFreeKey: c.uniques.command,
		wire.CommandDismiss: c.actions.dismiss,
		wire.CommandNote:    c.actions.journal,
		wire.CommandOperate: c.operations.operate,
		wire.CommandCancel:  c.operations.cancelOperation,
		wire.CommandUndo:    c.undos.command,
	}
}

// pause pauses or resumes a queue, a periodic job, a limit or a governed queue.
func (c *core) pause(now time.Time, r request) error {
	if r.cmd.Periodic != "" || r.cmd.Limit != "" || r.cmd.Governed != "" {
		return c.periodics.command(now, r)
	}
	return c.pauses.carryOut(now, r)
}

// maxSleep is the longest time between two steps: the wall clock may be set.
const maxSleep = ledger.MaxSleep

// step does what can be done now. It returns when to call it again if nothing happens before.
func (c *core) step(now time.Time) (wake time.Time, err error) {
	now = now.Round(0) // wall clock: timers must follow it when it is set
	if back := c.ledger.Tick(now); back > 0 {
		c.carry.setBack(back)
		c.queues.setBack(back)
		c.limits.setBack()
	}
	epoch, folded := c.entries.Progress()
	if c.ledger.Epoch() >= 0 && epoch != c.ledger.Epoch() {
		return now, fmt.Errorf("%w: epoch %d, this was %d", errFenced, epoch, c.ledger.Epoch())
	}
	if err := c.stepLedger(now, folded); err != nil {
		return now, err
	}
	wake = now.Add(maxSleep)
	over := false
	switch c.phase {
	case phaseOpening:
		over, err = c.opening.open(now, c.entries.State())
	case phaseCatchingUp:
		over, err = c.opening.catchUp(now, c.entries.State())
	case phaseReconciling:
		if err = inOrder(now, c.silence.step, c.limits.open); err == nil {
			over, err = c.reconciler.step(now)
		}
	case phaseLeading:
		wake, err = c.lead(now)
	}
	if over {
		c.phase++
	}
	return wake, err
}

// stepLedger takes in what the view has folded. Copies come before all that acts on entries: of a
// fire that was refused, the copy must be settled before anything is done to the entry.
func (c *core) stepLedger(now time.Time, folded int64) error {
	if c.phase == phaseLeading {
		if err := c.ledger.Release(folded); err != nil {
			return err
		}
		if err := c.copies.step(now); err != nil {
			return err
		}
	}
	return c.ledger.Step(folded)
}

// lead calls the duties in this order.
func (c *core) lead(now time.Time) (wake time.Time, err error) {
	err = inOrder(now, c.silence.step, c.reconciler.stepWaiting, c.gap.step, c.changes.step, c.periodics.step, c.claims.step, c.uniques.step, c.lateFires.step, c.trimmer.step,
		c.carry.step, c.operations.step, c.queues.step, c.governed.step, c.limits.step, c.unrouted.step)
	if err != nil {
		return now, err
	}
	if wake, err = c.dispatcher.step(now); err != nil {
		return now, err
	}
	wake = earliest(wake, c.operations.wake(now), c.changes.wake(now), c.periodics.wake(now), c.carry.wake(now))
	for _, step := range []func(time.Time) (time.Time, error){c.routing.step, c.announcer.step} {
		next, err := step(now)
		if err != nil {
			return now, err
		}
		wake = earliest(wake, next)
	}
	return wake, nil
}

// inOrder calls functions up to the first that fails.
func inOrder(now time.Time, steps ...func(time.Time) error) error {
	for _, step := range steps {
		if err := step(now); err != nil {
			return err
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

// routingIntact takes in that jobs.fire leads to the queues.
func (c *core) routingIntact() {
	c.routing.intact()
	c.phase = phaseWitness
}

// witnessed takes in whether the witness of earlier epochs stands, and for which queues it speaks.
// If that is undecided, reconciler.decided follows.
func (c *core) witnessed(v verdict, p proof) {
	c.reconciler.verdict, c.reconciler.proof = v, p
	c.phase = phaseReconciling
}

// begin takes in the witness that stands from now on, empty if there is none. The epoch leads once
// its record is confirmed: a leader that fired before and ended would leave fires without a
// witness, and they would be fired again.
func (c *core) begin(now time.Time, witness string) error {
	begun := c.ledger.NewRecord(now, wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}, ledger.EntryID{})
	begun.Confirmed = func() { c.phase = phaseLeading }
	if err := c.ledger.Send(begun); err != nil {
		return err
	}
	c.phase = phaseBeginning
	return inOrder(now, c.reconciler.dropSuspects, c.changes.journalOthers, c.enqueues.open, c.operations.resume, c.pauses.notifyAgain,
		c.copies.open, c.queues.open, c.uniques.open, c.gap.decide)
}

// rewitnessed journals another witness, because the broker's nodes or links have changed. It does
// not speak for what was fired before.
func (c *core) rewitnessed(now time.Time, witness string) error {
	return c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}, ledger.EntryID{})
}

// inDoubt returns how many fires and burials of earlier leaders are not settled yet.
func (c *core) inDoubt() int { return c.reconciler.inDoubt() + len(c.lateFires.open) }

// reconciled returns what became of the fires that earlier leaders left in doubt. It does so once,
// when it is known of all of them.
func (c *core) reconciled() (delivered int, repeated map[string]int, known bool) {
	if c.phase != phaseLeading {
		return 0, nil, false
	}
	return c.reconciler.outcome()
}

// command carries out a command, in the loop that fires, so that nothing comes between. It calls
// answer once, when it is known what became of it, or never if the epoch ends before.
func (c *core) command(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	return c.commands.take(now, request{cmd, answer})
}

// beginCarry starts a carry-over if none is under way.
func (c *core) beginCarry(linger time.Duration) error {
	if c.phase < phaseBeginning {
		return nil
	}
	return c.carry.begin(linger)
}

// confirmedNow returns what this epoch knows to be confirmed, or before it begins what the last one
// knew.
func (c *core) confirmedNow() *wire.Confirmed { return cmp.Or(c.ledger.Known(), c.setup.known) }
