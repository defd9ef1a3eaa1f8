package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// base is what every duty of the leader works with. A duty reads the view through entries and
// publishes through the ledger.
type base struct {
	entries  *tracker.Reader
	ledger   *ledger.Ledger
	setup    *setup
	counters *Counters
}

// errFetch is returned when the record of a large entry cannot be fetched now.
var errFetch = errors.New("scheduler: cannot fetch")

const (
	fetchAgain   = 5 * time.Second
	maxUnfetched = 10 // how often in a row, before an entry is parked
)

// load returns an entry and its record. The record is nil if it is gone.
func (b *base) load(at ledger.EntryID) (*tracker.Stored, *wire.Entry, error) {
	s, err := b.entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return nil, nil, err
	}
	e, err := b.read(s)
	return s, e, err
}

// read returns the record of an entry, nil if it is gone. A large one is fetched from its stream.
func (b *base) read(s *tracker.Stored) (*wire.Entry, error) {
	var raw []byte
	if s.Raw == nil {
		var err error
		if raw, err = b.setup.fetch(s.Stream, s.Offset); err != nil {
			return nil, fmt.Errorf("%w %s@%d: %w", errFetch, s.Stream, s.Offset, err)
		}
		if raw == nil {
			return nil, nil
		}
	}
	e, err := s.Entry(raw)
	if err != nil {
		return nil, nil //nolint:nilerr // it was readable once, so the entry is at fault
	}
	return &e, nil
}

// current returns the entry at an offset, or the one that replaced it since.
func (b *base) current(stream string, offset int64) (*tracker.Stored, error) {
	for {
		s, err := b.entries.Get(stream, offset)
		if err != nil || s != nil {
			return s, err
		}
		by, replaced, err := b.entries.Successor(stream, offset)
		if err != nil || !replaced {
			return nil, err
		}
		offset = by // a later one each time
	}
}

// entryAt returns the record of an entry that the view no longer has, nil if its stream does not
// have it either. ok is false if the stream cannot be read now.
func (b *base) entryAt(stream string, offset int64, tag string) (raw json.RawMessage, ok bool) {
	body, err := b.setup.fetch(stream, offset)
	if err != nil {
		return nil, false
	}
	e, err := wire.ParseEntry(stream, offset, body)
	if err != nil || wire.JIDTag(e.JID) != tag {
		return nil, true
	}
	return body, true
}

// amongDead returns the dead job with a jid for which is holds, nil if there is none.
func (b *base) amongDead(jid string, is func(*tracker.Stored) bool) (*tracker.Stored, error) {
	dead, err := b.entries.Find(wire.DeadJobs, jid)
	if i := slices.IndexFunc(dead, is); err == nil && i >= 0 {
		return dead[i], nil
	}
	return nil, err
}

// madeBy returns a predicate that reports whether a burial made a dead job.
func madeBy(origin wire.Through) func(*tracker.Stored) bool {
	return func(s *tracker.Stored) bool { return s.Origin() == origin }
}

// recordOf returns a record about an entry that the view has.
func recordOf(what string, s *tracker.Stored) wire.JournalRecord {
	return wire.JournalRecord{Type: what, Stream: s.Stream, Offset: s.Offset, JID: wire.JIDTag(s.JID)}
}

// setup is the configuration of a core.
type setup struct {
	identity string // unique to this epoch
	onGap    string // hold, fire or discard
	base     int64  // the offset at which streams begin on this broker
	known    *wire.Confirmed
	suspects map[ledger.EntryID]int
	left     leftovers
	deadMax  int64         // how many dead jobs are kept at most
	deadAge  time.Duration // and for how long
	pace     pace          // of operations

	isBound func(queue string) bool  // reports whether a queue is known to exist and to be bound
	bind    func(queue string) error // declares and binds a queue; dueQueues.bound gets the result
	window  func(queue string) int   // returns how many fires a queue may have unconfirmed
	certain func(queue string) bool  // reports whether what is fired to a queue is fired again only after its workers lost their connections

	// govern says what is wanted of governed queues; governed.found gets what there is.
	govern func([]governing)
	// tryAlternate has the alternate exchange tried; governed.tried gets the result.
	tryAlternate func()
	// slotsOf returns how many jobs workers run at once, by queue, as far as they say.
	slotsOf func() map[string]int64
	// watchUnserved has queues checked for consumers; ahead.checked gets the results.
	watchUnserved func(queues []string)

	// hasRead reports whether the view has read to the end that a stream had at some time after
	// since.
	hasRead func(stream string, since time.Time) bool

	// answer answers the publisher of a unique job.
	answer func(to wire.Delivery, r wire.Reply)

	// fetch returns a record from its stream, nil if retention removed it.
	fetch func(stream string, offset int64) ([]byte, error)
	// journal reads a part of the journal again, readLater does so in the background until each
	// returns errRead.
	journal   func(from, below int64, each func(*wire.Record) error) error
	readLater func(from int64, each func(*wire.Record) error) *reading

	probeQueue   string               // where probes arrive
	probeTimeout func() time.Duration // how long a confirmed probe may take to arrive
	follow       func(probe int64)    // sends an unroutable probe after a probe
}

// pace is how much of an operation is done at a time.
type pace struct {
	look    int   // entries that are read in a step
	batch   int   // entries that are acted upon in a step
	records int64 // entries after which the journal gets a record of the progress
	read    int   // records of the journal that are read at a time
}
