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

// base is what every duty of the leader works with: it reads the view, and publishes through the
// ledger.
type base struct {
	entries  *tracker.Entries
	ledger   *ledger.Ledger
	setup    *setup
	counters *Counters
}

// errFetch says that the record of a large entry could not be fetched now. It concerns that entry alone.
var errFetch = errors.New("scheduler: cannot fetch")

const (
	fetchAgain   = 5 * time.Second
	maxUnfetched = 10 // how often in a row, before an entry is parked
)

// load gets an entry and reads it again. The entry is nil if its record can no longer be had.
func (b *base) load(at ledger.EntryID) (*tracker.Stored, *wire.Entry, error) {
	s, err := b.entries.Get(at.Stream, at.Offset)
	if err != nil || s == nil {
		return nil, nil, err
	}
	e, err := b.read(s)
	return s, e, err
}

// read reads an entry again; nil if its record can no longer be had.
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
		return nil, nil //nolint:nilerr // what was read once and cannot be read again is the entry's fault
	}
	return &e, nil
}

// current gives the entry at an offset, or the one that stands for it now: it may have been carried over, or changed, since it was seen.
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

// entryAt reads the record of an entry that is no longer in the view; nil if its stream does not have it any more. ok is false where the
// stream cannot be read now.
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

// amongDead finds the dead job with a jid that is the one.
func (b *base) amongDead(jid string, is func(*tracker.Stored) bool) (*tracker.Stored, error) {
	dead, err := b.entries.Find(wire.DeadJobs, jid)
	if i := slices.IndexFunc(dead, is); err == nil && i >= 0 {
		return dead[i], nil
	}
	return nil, err
}

// madeBy tells whether a burial made a dead job.
func madeBy(origin wire.Through) func(*tracker.Stored) bool {
	return func(s *tracker.Stored) bool { return s.Origin() == origin }
}
