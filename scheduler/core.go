package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// core is the leader as a state machine: it looks at the view, publishes through a port and is told of confirms, commands and the
// time. It does no I/O of its own, so that a test can drive it through whatever a broker may do. One core is one epoch.
type core struct {
	base
	phase phase

	silence    silence
	lanes      lanes
	opening    opening
	settling   settling
	way        way
	commands   commands
	carry      carrier
	trimmer    trimmer
	operations operations
	actions    actions
	undos      undos
	changes    changes
	enqueues   enqueues
	pauses     pauses
	gap        gap
	announcer  announcer
	copies     copies
	lateFires  lateFires
	dispatcher dispatcher
}

// errUnsure ends an epoch: the next finds out what the stream has.
var errUnsure = errors.New("scheduler: a stream refused an entry that stands for another, and may have it all the same")

var errFenced = errors.New("scheduler: another leader has followed")

// setup is what a core is told at its start.
type setup struct {
	identity  string // unique to this epoch
	onGap     string // hold, fire or discard
	base      int64  // the offset at which streams begin on this broker
	known     *wire.Confirmed
	suspects  map[spot]int
	deadMax   int64                    // dead jobs that are kept at most
	deadAge   time.Duration            // and how long
	pace      pace                     // of operations
	isBound   func(queue string) bool  // whether a queue is known to be there and bound
	bind      func(queue string) error // has a queue made and bound; core.bound is told of it, unless there is an error
	fetch     func(stream string, offset int64) ([]byte, error)
	journal   func(from, below int64, each func(*wire.Record) error) error // reads the journal again
	readLater func(from int64, each func(*wire.Record) error) *reading     // the same in the background, until each gives errRead
	window    func(queue string) int                                       // how many fires a queue may have open
	patience  func() time.Duration                                         // with a probe
	probed    string                                                       // the queue to which probes are sent
	follow    func(probe int64)                                            // has a probe followed by one to no queue
}

type phase int

const (
	phaseOpening   phase = iota // the opened record is on its way
	phaseCatching               // barriers are on their way
	phaseWay                    // it is being looked whether what is fired reaches its queue
	phaseWitness                // it is being looked whether the broker restarted
	phaseSettling               // doubtful entries of earlier epochs are settled
	phaseSettled                // all are; a witness is wanted
	phaseBeginning              // its record is on its way
	phaseLeading
)

func (p phase) String() string {
	return [...]string{"opening", "catching up", "looking", "settling", "settling", "settling", "settling", "leading"}[p]
}

// spot names an entry.
type spot = ledger.EntryID

// newCore makes a core. An error of the port that wraps broker.ErrUnpublishable is about one message; any other ends the epoch.
func newCore(entries *tracker.Entries, p ledger.Port, s setup) *core {
	c := &core{}
	c.base = base{entries: entries, setup: &s, counters: &Counters{}}
	c.ledger = ledger.New(ledger.Config{Port: p, View: entries, Suspects: s.suspects, Room: c.way.room, Took: c.counters.Confirms.note})
	c.way = way{base: c.base}
	c.opening = opening{base: c.base}
	c.lanes = lanes{base: c.base, all: map[string]*lane{}}
	c.dispatcher = dispatcher{base: c.base, lanes: &c.lanes, routing: &c.way, copies: &c.copies, unfetched: map[spot]int{}}
	c.settling = settling{base: c.base, dispatcher: &c.dispatcher, copies: &c.copies, reentry: reentry{base: c.base}}
	c.lateFires = lateFires{base: c.base, settling: &c.settling, seen: entries.Late()}
	c.silence = silence{base: c.base, lanes: &c.lanes}
	c.copies = copies{base: c.base, lanes: &c.lanes}
	c.announcer = announcer{base: c.base, routing: &c.way}
	c.changes = changes{base: c.base, enqueues: &c.enqueues, replacing: map[spot]*replacement{}}
	c.enqueues = enqueues{base: c.base, carry: &c.carry, enqueuing: map[string]*enqueuing{}}
	c.carry = carrier{base: c.base, operations: &c.operations, pauses: &c.pauses, changes: &c.changes, enqueues: &c.enqueues, gap: &c.gap}
	c.gap = gap{base: c.base, carry: &c.carry}
	c.actions = actions{base: c.base, dispatcher: &c.dispatcher, changes: &c.changes}
	c.undos = undos{base: c.base, changes: &c.changes, operations: &c.operations}
	c.operations = operations{base: c.base, lanes: &c.lanes, routing: &c.way, dispatcher: &c.dispatcher, changes: &c.changes, actions: &c.actions, undos: &c.undos, carry: &c.carry, all: map[string]*operating{}}
	c.commands = commands{base: c.base, lanes: &c.lanes, settling: &c.settling, dispatcher: &c.dispatcher, actions: &c.actions, waiting: map[string][]func(wire.Reply){}, verbs: map[string]verb{
		wire.CommandPing:    ping,
		wire.CommandState:   c.pauses.state,
		wire.CommandRelease: c.gap.beginRelease,
		wire.CommandDiscard: c.gap.beginDiscard,
		wire.CommandEnqueue: c.enqueues.command,
		wire.CommandPause:   c.pauses.carryOut,
		wire.CommandResume:  c.pauses.carryOut,
		wire.CommandDismiss: c.actions.dismiss,
		wire.CommandNote:    c.actions.journal,
		wire.CommandOperate: c.operations.operate,
		wire.CommandCancel:  c.operations.cancelOperation,
		wire.CommandUndo:    c.undos.command,
	}}
	c.trimmer = trimmer{base: c.base}
	c.pauses = pauses{base: c.base}
	return c
}

// maxSleep bounds how long the core sleeps: wall clocks may be set.
const maxSleep = ledger.MaxSleep

// batch is how many entries are fired before commands and confirms are looked at again.
const batch = 256

// step does what can be done now. It tells when to call again if nothing happens before.
func (c *core) step(now time.Time) (wake time.Time, err error) {
	now = now.Round(0)                        // wall clock: timers must follow it when it is set
	if back := c.ledger.Tick(now); back > 0 { // what was to be tried again in a second would else be in an hour
		c.carry.setBack(back)
		c.lanes.setBack(back)
	}
	epoch, folded := c.entries.Progress()
	if c.ledger.Epoch() >= 0 && epoch != c.ledger.Epoch() {
		return now, fmt.Errorf("%w: epoch %d, this was %d", errFenced, epoch, c.ledger.Epoch())
	}
	if err := c.ledger.Step(folded); err != nil {
		return now, err
	}
	wake = now.Add(maxSleep)
	over := false
	switch c.phase {
	case phaseOpening:
		over, err = c.opening.open(now, c.entries.State())
	case phaseCatching:
		over, err = c.opening.catchUp(now, c.entries.State())
	case phaseSettling:
		if err = c.silence.step(now); err == nil {
			over, err = c.settling.step(now)
		}
	case phaseLeading:
		wake, err = c.lead(now)
	}
	if over {
		c.phase++
	}
	return wake, err
}

// witnessed takes in whether the witness of earlier epochs still stands, and which queues it
// speaks for. If that is undecided, decided is called later.
func (c *core) witnessed(v verdict, p proof) {
	c.settling.verdict, c.settling.proof = v, p
	c.phase = phaseSettling
}

// settled takes in the witness that stands from now on; empty if there is none. The epoch leads from here on, and the record
// says so, be the witness new or not: an epoch that led left a barrier in every entry stream. Nothing is fired before that is confirmed: a
// leader that died then would have left fires and no witness, and they would be fired again.
func (c *core) settled(now time.Time, witness string) error {
	r := wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}
	begun := c.ledger.NewRecord(now, r, spot{})
	begun.Confirmed = func() { c.phase = phaseLeading }
	if err := c.ledger.Send(begun); err != nil {
		return err
	}
	c.phase = phaseBeginning
	if err := c.dropSuspects(); err != nil {
		return err
	}
	if err := c.changes.tellOfOthers(now); err != nil {
		return err
	}
	c.enqueues.opened = c.ledger.Seq() // what earlier leaders had not told is told up to here
	if err := c.operations.resumeOperations(now); err != nil {
		return err
	}
	if err := c.pauses.tellAgain(now); err != nil {
		return err
	}
	c.entries.TakeReady()
	c.entries.TakeCopies()
	var err error
	if c.copies.undecided, err = c.entries.Copies(); err != nil {
		return err
	}
	for _, queue := range c.entries.Queues() {
		c.lanes.look(c.lanes.of(queue), tracker.DueKey{})
	}
	return c.gap.decide(now)
}

// rewitnessed journals another witness: the broker's nodes or links have changed. What was fired
// before has none any more.
func (c *core) rewitnessed(now time.Time, witness string) error {
	return c.ledger.Record(now, wire.JournalRecord{Type: wire.TypeWitness, Witness: witness}, spot{})
}

// dropSuspects forgets those that are neither pending nor in doubt any more.
func (c *core) dropSuspects() error {
	for at := range c.ledger.Suspects() {
		s, err := c.entries.Get(at.Stream, at.Offset)
		if err != nil {
			return err
		}
		if s == nil && c.ledger.Busy(at) == nil {
			delete(c.ledger.Suspects(), at)
		}
	}
	return nil
}

// inDoubt counts the fires and burials of earlier leaders that are not settled yet.
func (c *core) inDoubt() int {
	return c.settling.inDoubt() + len(c.lateFires.open)
}

// settledFires returns what became of the fires that earlier leaders left in doubt, once, when it
// is known of all of them.
func (c *core) settledFires() (delivered int, repeated map[string]int, known bool) {
	if c.phase != phaseLeading {
		return 0, nil, false
	}
	return c.settling.fires()
}

// command carries out a command, in the loop that fires, so that nothing comes between. answer is called once, as soon as it is known
// what became of it; if the epoch ends before, it is not called, and the caller does not know.
func (c *core) command(now time.Time, cmd wire.Command, answer func(wire.Reply)) error {
	return c.commands.take(now, cmd, answer)
}

// beginCarry starts a carry-over, if none is under way.
func (c *core) beginCarry(linger time.Duration) error {
	if c.phase < phaseBeginning {
		return nil
	}
	return c.carry.begin(linger)
}

// stands takes in that the way leads from jobs.fire to the queues.
func (c *core) stands() {
	c.way.stands()
	c.phase = phaseWitness
}

func (c *core) lead(now time.Time) (time.Time, error) {
	if err := c.silence.step(now); err != nil {
		return now, err
	}
	if err := c.settling.settleWaiting(now); err != nil {
		return now, err
	}
	if err := c.gap.step(now); err != nil {
		return now, err
	}
	if err := c.changes.step(now); err != nil {
		return now, err
	}
	if err := c.lateFires.step(now); err != nil {
		return now, err
	}
	if err := c.trimmer.step(now); err != nil {
		return now, err
	}
	if err := c.carry.step(now); err != nil {
		return now, err
	}
	busy, err := c.operations.step(now)
	if err != nil {
		return now, err
	}
	c.lanes.take(now, c.entries.TakeReady())
	if err := c.copies.step(now); err != nil {
		return now, err
	}
	wake, err := c.dispatcher.step(now)
	if err != nil {
		return now, err
	}
	if len(c.operations.all) > 0 {
		wake = earlier(wake, now.Add(operationEvery))
	}
	if busy {
		wake = now
	}
	wake = earlier(wake, c.changes.wake(now))
	wake = earlier(wake, c.carry.wake(now))
	if wake, err = c.way.step(now, wake); err != nil {
		return now, err
	}
	return c.announcer.step(now, wake)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
