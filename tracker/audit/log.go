package audit

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Log writes the audit log.
type Log struct {
	Max       uint64                          // entries of each list
	operation func(id string) *wire.Operation // returns a bulk operation that is known, else nil
	sizes     map[byte]*table.Sized           // of the lists
}

// New returns a log that is to be loaded. operation returns a bulk operation that is known, nil if
// it is not.
func New(operation func(id string) *wire.Operation) *Log {
	return &Log{Max: 100_000, operation: operation, sizes: map[byte]*table.Sized{}}
}

// Load reads what the log keeps in memory.
func (l *Log) Load(r view.Reader) error {
	for _, list := range lists {
		size, err := table.LoadSized(r, list)
		if err != nil {
			return err
		}
		l.sizes[list] = &size
	}
	return nil
}

// Save writes the sizes that changed.
func (l *Log) Save(tx *view.Tx) error {
	for _, list := range lists {
		if err := l.sizes[list].Save(tx); err != nil {
			return err
		}
	}
	return nil
}

// dispatches are the fires and burials that are entries. A kill has a record of its own.
var dispatches = []string{wire.OpTriggered, wire.OpRetried, wire.OpRefired, wire.OpExpired}

// types are the records that are entries, beside operations, pauses and notes.
var types = []string{wire.TypeReturned, wire.TypeRefused, wire.TypeDuplicate, wire.TypeExpired, wire.TypeDeleted, wire.TypeChanged, wire.TypeUndone,
	wire.TypeKilled, wire.TypeTrimmed, wire.TypeRecreated, wire.TypeMisrouted, wire.TypeReleased, wire.TypeDismissed, wire.OpEnqueued}

// FoldDispatch takes in a fire or burial. at is when it was, 0 if that is not known.
func (l *Log) FoldDispatch(tx *view.Tx, d *wire.Dispatch, at float64, record int64) error {
	if !slices.Contains(dispatches, d.Op) {
		return nil
	}
	return l.keep(tx, &Entry{Record: record, At: at, Op: d.Op, Stream: d.Stream, Offset: d.Offset, JID: d.JIDTag, Actor: d.Actor, Operation: d.Operation})
}

// Fold takes in a record of the journal.
func (l *Log) Fold(tx *view.Tx, j *wire.JournalRecord, record int64) error {
	e := &Entry{Record: record, At: j.At, Op: j.Type, Stream: j.Stream, Offset: j.Offset, JID: j.JID, Actor: j.Actor, Operation: j.InOperation, Count: j.Count}
	if e.Reason = j.Reason; j.Error != "" {
		e.Reason = j.Error
	}
	switch {
	case wire.SettlesLease(j.Command): // workers do that as often as they work
		return nil
	case slices.Contains(types, j.Type):
		return l.keep(tx, e)
	case j.Type == wire.TypeState && j.Paused != nil && j.Queue != "":
		e.Op, e.Queue = OpResumed, j.Queue
		if _, is := (*j.Paused)[j.Queue]; is {
			e.Op = OpPaused
		}
		return l.keep(tx, e)
	case j.Type == wire.TypeDefined:
		return l.foldDefined(tx, e, j.Defined)
	case j.Type == wire.TypeTicked:
		return l.foldTicked(tx, e, j.Ticks)
	case j.Type == wire.TypeNoted && j.Noted != nil:
		e.Op, e.Queue, e.To, e.Identity, e.Count = j.Noted.Op, j.Noted.Queue, j.Noted.To, j.Noted.Identity, j.Noted.Count
		if j.Noted.JID != "" {
			e.JID = wire.JIDTag(j.Noted.JID)
		}
		return l.keep(tx, e)
	case j.Type == wire.TypeFreed:
		return l.foldFreed(tx, e, j.Slots)
	case j.Type == wire.TypeOperation && j.Operation != nil:
		return l.foldOperation(tx, e, j.Operation)
	}
	return nil
}

// foldDefined keeps one entry for all definitions of a record: the offset of the record names it.
func (l *Log) foldDefined(tx *view.Tx, e *Entry, all []wire.Defined) error {
	if len(all) == 0 {
		return nil
	}
	e.Op, e.Count = OpForgotten, int64(len(all))
	for _, d := range all {
		if len(d.Value) > 0 {
			e.Op = cmp.Or(d.Op, OpDefined)
		}
	}
	switch {
	case len(all) > 1:
	case all[0].Kind == wire.KindLimit:
		e.Limit = all[0].Name
	default:
		e.Periodic = all[0].Name
	}
	return l.keep(tx, e)
}

// foldFreed keeps that slots were freed: by a user, or because their jobs are gone.
func (l *Log) foldFreed(tx *view.Tx, e *Entry, slots []wire.HeldSlot) error {
	if e.Count = int64(len(slots)); e.Count == 1 {
		e.JID, e.Stream, e.Offset = slots[0].JID, slots[0].Stream, slots[0].Offset
	}
	return l.keep(tx, e)
}

// foldTicked keeps what a user asked for, and ticks that were missed.
func (l *Log) foldTicked(tx *view.Tx, e *Entry, ticks []wire.Tick) error {
	several := false
	for _, t := range ticks {
		switch {
		case t.Outcome == wire.TickRun:
			e.Op, e.Stream, e.JID = OpRun, wire.ScheduledJobs, wire.JIDTag(t.JID)
			if t.By != nil {
				e.Offset = *t.By
			}
		case t.Why == wire.WhyAsked:
			e.Op = OpSkipped
		case t.Why == wire.WhyMissed:
			e.Op, e.Count = OpMissed, e.Count+max(1, t.Count)
		default:
			continue
		}
		if several = several || e.Periodic != "" && e.Periodic != t.Periodic; !several {
			e.Periodic = t.Periodic
		}
	}
	if e.Op == wire.TypeTicked {
		return nil
	}
	if several {
		e.Periodic = ""
	}
	return l.keep(tx, e)
}

// foldOperation keeps how an operation begins and ends, and not its progress.
func (l *Log) foldOperation(tx *view.Tx, e *Entry, op *wire.Operation) error {
	if begins := op.Action != ""; !begins && op.State == wire.OperationRunning {
		return nil
	}
	e.Operation, e.State = op.ID, op.State
	if op.Action == "" { // only its first record says what it is
		op = cmp.Or(l.operation(op.ID), &wire.Operation{})
	}
	e.Action, e.Stream, e.Actor, e.Reason = op.Action, op.Stream, op.Actor, op.Reason
	return l.keep(tx, e)
}

// keep writes an entry. It forgets the oldest of its list if there are too many.
func (l *Log) keep(tx *view.Tx, e *Entry) error {
	list := e.list()
	size := l.sizes[list].Size
	if e.At == 0 { // a transport without times, and a fire: it was just after the entry before it
		var err error
		if e.At, err = newestAt(tx); err != nil {
			return err
		}
	}
	if size.Count++; size.Count > l.Max {
		if err := l.forgetOldest(tx, list, &size); err != nil {
			return err
		}
	}
	l.sizes[list].Resize(size)
	return tx.Set(keyEntry(list, e.Record), e.encode())
}

// forgetOldest forgets a sixty-fourth of a list: to look for the oldest entry costs more than to
// keep one.
func (l *Log) forgetOldest(tx *view.Tx, list byte, size *table.Size) error {
	var last *Entry
	var keys [][]byte
	err := each(tx, keyEntry(list, int64(size.From)), table.After(keyList(list)), false, func(key []byte, e *Entry) bool {
		keys, last = append(keys, slices.Clone(key)), e
		return uint64(len(keys)) <= l.Max/64
	})
	if err != nil || last == nil {
		return err
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return err
		}
	}
	size.Count, size.From = size.Count-uint64(len(keys)), uint64(last.Record)+1
	return tx.Set(keyForgotten(list), binary.BigEndian.AppendUint64(nil, math.Float64bits(last.At)))
}

// Forget removes all entries: offsets of a journal that is gone are their names.
func (l *Log) Forget(tx *view.Tx) error {
	for _, list := range lists {
		l.sizes[list].Resize(table.Size{})
		if err := tx.Delete(keyForgotten(list)); err != nil {
			return err
		}
	}
	return table.Clear(tx, Table)
}

// each calls fn for the entries between two keys, until fn returns false.
func each(r view.Reader, lower, upper []byte, newest bool, fn func(key []byte, e *Entry) (more bool)) error {
	return table.Scan(r, lower, upper, newest, func(key, value []byte) (bool, error) {
		e, err := decode(key, value)
		if err != nil {
			return false, err
		}
		return fn(key, e), nil
	})
}

// end returns the oldest or the newest entry of a list, nil if the list is empty.
func end(r view.Reader, list byte, newest bool) (found *Entry, err error) {
	err = each(r, keyList(list), table.After(keyList(list)), newest, func(_ []byte, e *Entry) bool {
		found = e
		return false
	})
	return found, err
}

// newestAt returns the time of the newest entry.
func newestAt(r view.Reader) (at float64, err error) {
	for _, list := range lists {
		e, err := end(r, list, true)
		if err != nil {
			return 0, err
		}
		if e != nil {
			at = max(at, e.At)
		}
	}
	return at, nil
}
