package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// core is the leader as a state machine: it looks at the view, publishes through a port and is told of confirms, commands and the
// time. It does no I/O of its own, so that a test can drive it through whatever a broker may do. One core is one epoch.
type core struct {
	entries *tracker.Entries
	port    port
	setup   setup
	phase   phase
	epoch   int64

	window
	silence     silence
	busy        map[spot]*item // entries that were acted upon and whose record has not been folded yet
	folding     []*item        // the same, in the order in which their records will be folded
	lanes       lanes
	suspects    map[spot]int // entries that were in flight when a connection died, with how often
	again       []*item      // journal records that the broker refused: they are published again
	againAt     time.Time
	opening     opening
	settling    settling
	way         way
	commands    map[string][]func(wire.Reply) // commands under way, by id
	discarded   *discard
	carry       *carry
	trimming    trimming
	operations  map[string]*operating // by id
	replacing   map[spot]*replacement // by the entry that it stands for
	enqueuing   map[string]*enqueuing // by key
	opened      int64                 // the number of the last record that was sent before commands were taken
	pausing     bool                  // a record about paused queues is on its way
	pauses      []func() error        // what is to follow it
	releasing   *release
	announcedAt time.Time
	toldAt      time.Time      // when it was last looked which replacements were read back
	now         time.Time      // of the newest step
	passing     time.Duration  // how much time passed before it, of what the core could have slept
	undecided   []int64        // copies in jobs.gated of which it is not known yet whether they stand
	gatedHeld   bool           // nothing of jobs.gated is fired: an older broker topology is being taken over
	unfetched   map[spot]int   // large entries that could not be fetched, with how often in a row
	deferred    []func() error // what a confirm led to; done at the next step
	unread      []unread       // what waits for the view
	lateFires   lateFires
	counters    Counters
	late        time.Duration
}

// port is where the core publishes. Publish does not wait for the confirm. An error that wraps broker.ErrUnpublishable is about this message;
// any other ends the epoch.
type port interface {
	Publish(m wire.Message) (tag uint64, err error)
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
type spot struct {
	stream string
	offset int64
}

// item is one publish, from when it is sent until its record has been folded.
type item struct {
	seq       int64
	size      int
	build     func(seq, confirmed int64) wire.Message
	plain     bool   // a record without a number: it is published until the broker takes it
	once      bool   // if it is refused the epoch ends: only the stream tells whether it has it
	deed      bool   // a fire or burial: if it is refused its entry comes back
	buries    bool   // a burial: what its lane's queue answers says nothing of it
	spot      spot   // the entry it is about, if any
	more      []spot // further entries that it is about
	operation string // of a fire: the operation that it is part of
	tag       string // of a deed: wire.JIDTag of the entry
	command   string // of a deed: the id of the command that asked for it
	lane      *lane
	key       tracker.DueKey // where the lane has it
	sent      time.Time
	sentAfter time.Duration // by the clock of silence
	aside     bool          // it leaves the window to the others
	acked     bool
	folded    int64 // the number of the record after which its entry is what the view says
	nacks     int
	done      func(ok bool)  // called once it is known whether the broker took it
	lost      func()         // of a record that a later one replaces: called when its answer is not waited for any longer
	lostAfter time.Duration  // for how long it is waited for, at least
	doubt     *tracker.Doubt // of a fire that is repeated: how an earlier leader left its entry
	read      func() error   // called once the broker took it and the view has folded it

	// follow, if there is one, is called once the broker took it, and calls passed once a record that belongs to it is confirmed too. Until
	// then it is in doubt: a leader that dies in between leaves the record to the next one.
	follow func(passed func())
}

func newCore(entries *tracker.Entries, p port, s setup) *core {
	if s.suspects == nil {
		s.suspects = map[spot]int{}
	}
	return &core{
		entries: entries, port: p, setup: s, epoch: -1, suspects: s.suspects,
		window: newWindow(), silence: silence{gone: map[uint64]bool{}}, busy: map[spot]*item{}, unfetched: map[spot]int{}, lanes: newLanes(), commands: map[string][]func(wire.Reply){},
		lateFires: lateFires{seen: entries.Late()}, replacing: map[spot]*replacement{}, operations: map[string]*operating{}, enqueuing: map[string]*enqueuing{},
	}
}

// maxSleep bounds how long the core sleeps: wall clocks may be set.
const maxSleep = time.Second

// batch is how many entries are fired before commands and confirms are looked at again.
const batch = 256

// step does what can be done now. It tells when to call again if nothing happens before.
func (c *core) step(now time.Time) (wake time.Time, err error) {
	now = now.Round(0) // wall clock: timers must follow it when it is set
	c.follow(now)
	epoch, folded := c.entries.Progress()
	if c.epoch >= 0 && epoch != c.epoch {
		return now, fmt.Errorf("%w: epoch %d, this was %d", errFenced, epoch, c.epoch)
	}
	c.release(folded)
	if err := c.publishAgain(now); err != nil {
		return now, err
	}
	if err := c.doDeferred(); err != nil {
		return now, err
	}
	if err := c.doRead(folded); err != nil {
		return now, err
	}
	wake = now.Add(maxSleep)
	switch c.phase {
	case phaseOpening:
		err = c.open(now, c.entries.State())
	case phaseCatching:
		err = c.catchUp(now, c.entries.State())
	case phaseSettling:
		c.watchSilence()
		if err = c.askBehind(now); err == nil {
			err = c.settle(now)
		}
	case phaseLeading:
		wake, err = c.lead(now)
	}
	return wake, err
}

func (c *core) lead(now time.Time) (time.Time, error) {
	c.watchSilence()
	if err := c.askBehind(now); err != nil {
		return now, err
	}
	if err := c.settleWaiting(now); err != nil {
		return now, err
	}
	if err := c.continueDiscard(now); err != nil {
		return now, err
	}
	if err := c.tellReplaced(now); err != nil {
		return now, err
	}
	if err := c.settleLate(now); err != nil {
		return now, err
	}
	if err := c.trim(now); err != nil {
		return now, err
	}
	if err := c.continueCarry(now); err != nil {
		return now, err
	}
	busy, err := c.continueOperations(now)
	if err != nil {
		return now, err
	}
	c.take(now, c.entries.TakeReady())
	if err := c.decideCopies(now); err != nil {
		return now, err
	}
	wake, err := c.fireDue(now)
	if err != nil {
		return now, err
	}
	if len(c.operations) > 0 {
		wake = earlier(wake, now.Add(operationEvery))
	}
	if busy {
		wake = now
	}
	if len(c.replacing)+len(c.enqueuing) > fewTold {
		wake = earlier(wake, now.Add(tellEvery))
	}
	if c.carry != nil && c.carry.again.Before(wake) {
		wake = c.carry.again
	}
	if wake, err = c.watchWay(now, wake); err != nil {
		return now, err
	}
	if now.Sub(c.announcedAt) < announceEvery && !now.Before(c.announcedAt) {
		return later(now, earlier(wake, c.announcedAt.Add(announceEvery))), nil
	}
	return wake, c.announce(now)
}

// announceEvery bounds how often the journal is told that the window has drained: at a few hundred jobs a second it drains after each.
const announceEvery = 100 * time.Millisecond

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

// send publishes one item. The entry that it is about is busy until its record has been folded.
func (c *core) send(it *item) error {
	it.sent, it.sentAfter = c.now, c.silence.clock
	if len(c.flight) == c.silence.open {
		c.silence.answered = c.silence.clock
	}
	if it.plain {
		return c.sendPlain(it)
	}
	m := it.build(c.seq+1, c.watermark)
	c.sayAbove(m)
	tag, err := c.port.Publish(m)
	if err != nil {
		return err
	}
	c.seq++
	it.seq, it.folded, it.size = c.seq, c.seq, len(m.Body)
	if it.deed {
		c.way.sent(c.seq, m)
	}
	c.add(tag, it)
	if it.spot.stream != "" {
		c.busy[it.spot] = it
		c.folding = append(c.folding, it)
	}
	return nil
}

// sayAbove adds to a message that says what is confirmed the numbers above the watermark.
func (c *core) sayAbove(m wire.Message) {
	if _, says := m.Headers[wire.HeaderConfirmed]; !says {
		return
	}
	if above := c.aboveHeader(); above != "" {
		m.Headers[wire.HeaderAbove] = above
	}
}

func (c *core) sendPlain(it *item) error {
	m := it.build(0, c.watermark)
	c.sayAbove(m)
	tag, err := c.port.Publish(m)
	if err == nil {
		c.add(tag, it)
	}
	return err
}

// append publishes a record without a number.
func (c *core) append(stream string, r wire.JournalRecord) error {
	return c.send(&item{plain: true, build: func(seq, confirmed int64) wire.Message { return r.Append(stream, seq, confirmed) }})
}

// record publishes a JSON record to the journal.
func (c *core) record(now time.Time, r wire.JournalRecord, about spot, done func(ok bool)) error {
	it := c.recordItem(now, r, about)
	it.done = done
	return c.send(it)
}

func (c *core) recordItem(now time.Time, r wire.JournalRecord, about spot) *item {
	r.At, r.Epoch = wire.Seconds(now), c.epoch
	return &item{spot: about, build: func(seq, confirmed int64) wire.Message { return r.Append(wire.Journal, seq, confirmed) }}
}

// confirmed is told that the broker took a publish, or refused it.
func (c *core) confirmed(now time.Time, tag uint64, ack bool) error {
	c.silence.answered = c.silence.clock
	it := c.takeOut(tag)
	if it == nil {
		delete(c.silence.gone, tag) // it was given up on
		return nil
	}
	if it.awaits() {
		it.lane.answered = max(it.lane.answered, it.seq)
	}
	if ack {
		if it.seq > 0 {
			c.silence.numbered = max(c.silence.numbered, tag)
		}
		if it.seq > 0 || it.lost != nil {
			c.silence.journal = max(c.silence.journal, tag)
		}
		c.counters.Confirms.note(now.Sub(it.sent))
		c.accepted(it)
		return nil
	}
	if it.deed {
		return c.returned(now, it, nack, true)
	}
	if it.once {
		return fmt.Errorf("%w: %s", errUnsure, it.spot.stream)
	}
	it.nacks++
	if it.nacks > maxNacks {
		return fmt.Errorf("scheduler: the journal refused a record %d times", it.nacks)
	}
	c.passed(it.seq)
	c.again, c.againAt = append(c.again, it), now.Add(againAfter)
	return nil
}

const (
	maxNacks   = 50
	againAfter = 100 * time.Millisecond
)

func (c *core) accepted(it *item) {
	it.acked = true
	if it.follow != nil {
		it.follow(func() { c.passed(it.seq) })
	} else {
		c.passed(it.seq)
	}
	delete(c.suspects, it.spot)
	if it.lane != nil {
		c.lanes.accepted(it.lane)
	}
	if it.done != nil {
		it.done(true)
	}
	if it.read != nil {
		c.unread = append(c.unread, unread{it.seq, it.read})
	}
}

// heldBecause says why a queue is held, by what became of its fire.
var heldBecause = map[string]string{
	nack:     "refused: the queue is full or down",
	noAnswer: "no answer: the queue's node may be down",
}

// returned journals that a fire or burial was refused, or had no answer: its entry is pending again. Its queue is held, unless it has answered
// later fires; all others go on. What the journal lacks it cannot take back.
func (c *core) returned(now time.Time, it *item, why string, journaled bool) error {
	c.counters.Returned++
	c.way.cameBack(it.seq)
	if it.lane != nil {
		it.lane.flying--
		if why == noAnswer && it.passedOver() { // its queue answers
			it.lane.full = false
			c.lanes.rouse(it.lane, time.Time{})
		} else {
			it.lane.bound, it.lane.recheck = false, true // it may be gone, or its node away
			c.lanes.hold(it.lane, now, heldBecause[why], maxHold)
		}
	}
	r := wire.JournalRecord{Type: wire.TypeReturned, Seq: it.seq, Reason: why, Stream: it.spot.stream, Offset: it.spot.offset, JID: it.tag}
	if journaled {
		r.TookBack, r.InOperation = it.command, it.operation
	}
	err := c.record(now, r, spot{}, func(bool) {
		it.acked = true
		c.passed(it.seq)
	})
	it.folded = c.seq
	if it.done != nil {
		it.done(false)
	}
	if err == nil && it.doubt != nil && !journaled { // the journal has the entry in doubt as an earlier leader left it
		err = c.takeBack(now, it.doubt)
	}
	return err
}

// publishAgain repeats journal records that the broker refused.
func (c *core) publishAgain(now time.Time) error {
	if len(c.again) == 0 || now.Before(c.againAt) {
		return nil
	}
	items := c.again
	c.again = nil
	for _, it := range items {
		if err := c.send(it); err != nil {
			return err
		}
	}
	return nil
}

// release frees the entries whose records the view has folded: from here on the view says what they are.
func (c *core) release(folded int64) {
	n := 0 // what stands behind the newest record that was folded is not looked at: when the view lags that may be much
	for n < len(c.folding) && (c.folding[n].seq <= folded || c.folding[n].nacks > 0) {
		n++
	}
	waiting := slices.DeleteFunc(c.folding[:n], func(it *item) bool { return c.releaseOne(it, folded) })
	freed := n - len(waiting)
	copy(c.folding[freed:n], waiting)
	clear(c.folding[:freed])
	c.folding = c.folding[freed:]
}

// releaseOne frees one entry, if its record has been folded and it is known what became of it.
func (c *core) releaseOne(it *item, folded int64) bool {
	if !it.acked || it.folded > folded {
		return false
	}
	for _, at := range append(it.more, it.spot) {
		if c.busy[at] == it {
			delete(c.busy, at)
		}
	}
	if it.folded != it.seq && it.lane != nil { // it came back
		c.lanes.look(it.lane, it.key)
	}
	return true
}

// announce journals what is confirmed: once the window has drained, and while headers cannot say
// all of it.
func (c *core) announce(now time.Time) error {
	drained := len(c.flight) == c.silence.open && len(c.again) == 0
	if !drained && len(c.above) <= maxRanges {
		return nil
	}
	return c.sayAll(now)
}

func (c *core) sayConfirmed(now time.Time) error {
	c.announced, c.announcedAt = c.passes, now
	r := wire.JournalRecord{Type: wire.TypeConfirmed, At: wire.Seconds(now), Epoch: c.epoch,
		Through: c.watermark, Above: slices.Clone(c.above), RoutedTo: c.way.say()}
	return c.send(&item{plain: true, lost: func() { c.announced = -1 }, lostAfter: silentAfter,
		build: func(seq, confirmed int64) wire.Message { return r.Append(wire.Journal, seq, confirmed) }})
}

// sayAll journals what is confirmed, unless the journal has been told all of it.
func (c *core) sayAll(now time.Time) error {
	if c.passes == c.announced && !c.way.unsaid() {
		return nil
	}
	return c.sayConfirmed(now)
}
