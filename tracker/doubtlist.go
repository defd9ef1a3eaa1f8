package tracker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Doubt is a fire or burial that may or may not have reached its target.
type Doubt struct {
	Epoch   int64
	Seq     int64
	Op      string
	JID     string  // as in headers: wire.JIDTag
	Command string  // the id of the command that asked for it
	Actor   string  // the user who did
	Bulk    string  // the operation that it is part of
	Entry   *Stored // nil if only the journal has the job
	Body    []byte  // the job as it was fired, where Entry is nil

	Late bool // its leader had been followed when it fired

	// Returned says that it did not arrive: its queue refused it. Only the journal has the job, so
	// it cannot be pending again.
	Returned bool

	ID EntryID // of the entry; without an entry, of the record in the journal, with an empty stream
}

// EntryID is the stream and the offset of an entry.
type EntryID struct {
	Stream string
	Offset int64
}

// DoubtList reads what an earlier leader may have left unsettled.
type DoubtList struct {
	store *view.Store
	shown *Shown
	rules *gateRules
}

// Doubts returns the fires and burials in doubt, in the order in which they were fired.
func (l DoubtList) Doubts() (all []Doubt, err error) {
	at := l.store.Snapshot() // an entry that is settled meanwhile has no mark
	defer func() { err = errors.Join(err, at.Close()) }()
	found, err := scanDoubts(at)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		d, err := doubtOf(at, f)
		if err != nil {
			return nil, err
		}
		l.rules.apply(d.Entry)
		all = append(all, d)
	}
	return all, nil
}

func doubtOf(r view.Reader, f doubt) (Doubt, error) {
	m, err := markAt(r, f.at)
	if err != nil {
		return Doubt{}, err
	}
	if m == nil {
		return Doubt{}, fmt.Errorf("tracker: entry %s@%d is in doubt and has no mark", f.at.name(), f.at.offset)
	}
	d := Doubt{
		Epoch: f.epoch, Seq: f.seq, Op: m.op, JID: m.tag, Command: m.command, Actor: m.actor, Bulk: m.bulk, Body: m.body,
		Late: m.late > 0, Returned: m.returned, ID: EntryID{f.at.name(), f.at.offset},
	}
	d.Entry, err = storedAt(r, f.at)
	return d, err
}

// A burial goes to the dead jobs and to the journal in one publish. If the broker dies in between,
// it may be among the dead jobs alone: a lone burial. Each stream has what one leader sent in its
// order, so the journal then has nothing that was sent after it. If the journal refused a burial,
// and it was taken back, the record that says so follows there.

// UnjournaledBurials returns the dead jobs that came of a lone burial whose entry is still there,
// the oldest first.
func (l DoubtList) UnjournaledBurials() (all []*Stored, err error) {
	s := l.shown.State()
	if last := s.Barriers[wire.DeadJobs].Before; last.Compare(s.JournaledTo) <= 0 {
		return nil, nil
	}
	c := codes[wire.DeadJobs]
	err = table.Scan(l.store, keyEntry(entryID{c, minOffset}), keyEntry(entryID{c, noOffset}), true, func(key, value []byte) (bool, error) {
		dead, err := decodeStored(entryIDOf(key[1:]), value)
		switch {
		case err != nil:
			return false, err
		case dead.Burial.Op == "":
			return true, nil
		case dead.Origin().Compare(s.JournaledTo) <= 0:
			return false, nil
		}
		left, err := leftBy(l.store, dead)
		if left {
			dead.Raw = nil // it is valid only here
			all = append(all, dead)
		}
		return true, err
	})
	slices.Reverse(all)
	return all, err
}

// leftBy reports whether the entry that was buried as a dead job is still there, and nothing was
// done to it since.
func leftBy(r view.Reader, dead *Stored) (bool, error) {
	id := entryID{codes[dead.Burial.Stream], dead.Burial.Offset}
	s, err := storedAt(r, id)
	if err != nil || s == nil || s.JID != dead.JID {
		return false, err
	}
	m, err := markAt(r, id)
	since := m != nil && dispatchID{m.epoch, m.seq}.compare(dispatchID{dead.Burial.Epoch, dead.Burial.Seq}) > 0
	return err == nil && !since, err
}
