package tracker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Total is how many entries of a stream are pending.
func (t *Entries) Total(stream string) int64 { return t.counts.of(codes[stream], countTotal, "") }

// Bytes is how large the records of a stream's pending entries are together.
func (t *Entries) Bytes(stream string) int64 { return t.counts.of(codes[stream], countBytes, "") }

// ByQueue counts a stream's pending entries by queue.
func (t *Entries) ByQueue(stream string) map[string]int64 {
	return t.counts.all(codes[stream], countQueue)
}

// ByClass counts a stream's pending entries by class.
func (t *Entries) ByClass(stream string) map[string]int64 {
	return t.counts.all(codes[stream], countClass)
}

// InQueue and OfClass count a stream's pending entries of one queue, or one class.
func (t *Entries) InQueue(stream, queue string) int64 {
	return t.counts.of(codes[stream], countQueue, queue)
}

// OfClass is InQueue for a class.
func (t *Entries) OfClass(stream, class string) int64 {
	return t.counts.of(codes[stream], countClass, class)
}

// Position is the offset up to which a stream has been folded.
func (t *Entries) Position(stream string) (int64, error) { return t.store.Position(stream) }

// Find gives the pending entries of a stream that have a jid, in the order of their offsets.
func (t *Entries) Find(stream, jid string) ([]*Stored, error) {
	offsets, err := t.offsets(stream, jid, maxFound)
	if err != nil {
		return nil, err
	}
	return t.withJID(stream, jid, offsets)
}

func (t *Entries) withJID(stream, jid string, offsets []int64) ([]*Stored, error) {
	var found []*Stored
	for _, o := range offsets {
		s, err := t.Get(stream, o)
		if err != nil {
			return nil, err
		}
		if s != nil && s.JID == jid {
			found = append(found, s)
		}
	}
	return found, nil
}

// Near gives the pending entries with a jid that stand nearest to an offset, at most limit on each side.
func (t *Entries) Near(stream, jid string, offset int64, limit int) ([]*Stored, error) {
	prefix := keyJIDs(codes[stream], jid)
	here := appendInt(slices.Clone(prefix), offset)
	var offsets []int64
	for _, side := range []struct {
		lower, upper []byte
		reverse      bool
	}{{prefix, here, true}, {here, after(prefix), false}} {
		n := 0
		err := t.store.Scan(side.lower, side.upper, side.reverse, func(key, _ []byte) bool {
			offsets = append(offsets, intOf(key[len(prefix):]))
			n++
			return n <= limit
		})
		if err != nil {
			return nil, err
		}
	}
	return t.withJID(stream, jid, offsets)
}

// maxFound bounds how many entries with one jid are looked at.
const maxFound = 1000

// Cursor is a place in a list; the zero value is its beginning.
type Cursor struct {
	At     time.Time
	Offset int64
	Set    bool
}

// Row is one line of a list, without the record itself.
type Row struct {
	Cursor
	Queue string
	Class string
	JID   string
}

// List calls fn for the pending entries of a stream by time, from behind a cursor, until fn returns false. Dead jobs are listed newest
// first, others by when they are due.
func (t *Entries) List(stream string, behind Cursor, fn func(Row) bool) error {
	return t.scanList(stream, behind, func(key, value []byte) bool {
		at, offset := listKeyParts(key)
		d := decoder{b: value}
		return fn(Row{Cursor{at, offset, true}, d.text(), d.text(), d.text()})
	})
}

// Doubt is a fire or burial of which it is not known whether it reached its target.
type Doubt struct {
	Epoch   int64
	Seq     int64
	Op      string
	JID     string  // as in headers: wire.JIDTag
	Command string  // the id of the command that asked for it
	Actor   string  // who did
	Bulk    string  // the operation that it is part of
	Entry   *Stored // nil if only the journal has the job
	Body    []byte  // the job as it was fired, where Entry is nil

	Late bool // its leader had been followed when it fired

	// Returned tells that it did not arrive: its queue refused it. Only the journal has the job, so it cannot be pending again.
	Returned bool

	Place struct {
		Stream string
		Offset int64
	}
}

// Doubts lists what is doubtful, in the order in which it was fired.
func (t *Entries) Doubts() (all []Doubt, err error) {
	at := t.store.Moment() // what is settled meanwhile has no mark any more
	defer func() { err = errors.Join(err, at.Close()) }()
	return t.doubtful(at)
}

func (t *Entries) doubtful(r view.Reader) ([]Doubt, error) {
	found, err := scanDoubts(r)
	if err != nil {
		return nil, err
	}
	var all []Doubt
	for _, f := range found {
		d := Doubt{Epoch: f.epoch, Seq: f.seq}
		if err := t.fillDoubt(r, &d, f.at); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (t *Entries) fillDoubt(r view.Reader, d *Doubt, p place) error {
	m, err := markAt(r, p)
	if err != nil {
		return err
	}
	if m == nil {
		return fmt.Errorf("tracker: doubtful %s@%d has no mark", p.name(), p.offset)
	}
	d.Place.Stream, d.Place.Offset, d.Op, d.JID, d.Body, d.Command = p.name(), p.offset, m.op, m.tag, m.body, m.command
	d.Actor, d.Bulk, d.Returned, d.Late = m.actor, m.bulk, m.returned, m.late > 0
	d.Entry, err = storedAt(r, p)
	return err
}

// Happened tells what became of the entry that had a jid last; nil if that is not known, or no longer.
func (t *Entries) Happened(stream, jid string) (*wire.Happened, error) {
	return happened(t.store, codes[stream], wire.JIDTag(jid))
}

func happened(r view.Reader, stream code, tag string) (*wire.Happened, error) {
	raw, ok, err := r.Get(keyHappened(stream, tag))
	if err != nil || !ok {
		return nil, err
	}
	var h wire.Happened
	if err := json.Unmarshal(raw[8:], &h); err != nil {
		return nil, fmt.Errorf("tracker: history is damaged: %w", err)
	}
	h.Record = int64(binary.BigEndian.Uint64(raw))
	return &h, nil
}

// CarriedOut tells whether the journal has a command.
func (t *Entries) CarriedOut(id string) (bool, error) {
	_, ok, err := t.store.Get(keyCommand(id))
	return ok, err
}

// Rejects calls fn for the rejected records of a stream, newest first, until fn returns false.
func (t *Entries) Rejects(stream string, fn func(Reject) bool) error {
	prefix := keyRejects(stream)
	var fault error
	err := t.store.Scan(prefix, after(prefix), true, func(_, value []byte) bool {
		var j Reject
		if fault = json.Unmarshal(value, &j); fault != nil {
			return false
		}
		return fn(j)
	})
	if err != nil {
		return err
	}
	return fault
}

// Rejected gives one rejected record; ok is false if it is not kept.
func (t *Entries) Rejected(stream string, offset int64) (j Reject, ok bool, err error) {
	raw, ok, err := t.store.Get(keyReject(stream, offset))
	if err != nil || !ok {
		return j, false, err
	}
	if err := json.Unmarshal(raw, &j); err != nil {
		return j, false, fmt.Errorf("tracker: rejected record is damaged: %w", err)
	}
	return j, true, nil
}

// RejectedKept is how many rejected records of each stream are kept.
func (t *Entries) RejectedKept() (map[string]int64, error) {
	all := map[string]int64{}
	for stream := range t.State().Rejected {
		size, err := readRejectSize(t.store, stream)
		if err != nil {
			return nil, err
		}
		all[stream] = size.count
	}
	return all, nil
}
