package audit

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Query says which entries are asked for. Empty fields match all entries.
type Query struct {
	Actor, JID, Op string
	From, To       float64 // From ≤ at < To
	Below          int64   // only entries that the journal has below this offset; 0: all
	Limit          int     // entries at most
	Most           int     // entries to look at
}

// Found is the answer to a query.
type Found struct {
	Entries  []Entry // the newest first
	Searched int
	Next     int64 // the Below that continues the search; 0: there is no more
	Older    bool  // older entries may match that are not kept
}

func (q *Query) match(e *Entry) bool {
	return (q.Actor == "" || e.Actor == q.Actor) && (q.Op == "" || e.Op == q.Op) && (q.JID == "" || e.JID == q.JID) &&
		(q.From == 0 || e.At >= q.From) && (q.To == 0 || e.At < q.To)
}

// Reader reads the audit log.
type Reader struct {
	store view.Reader
	// journal returns the first offset of the journal that was folded, and when the first epoch
	// began that it has.
	journal func() (first int64, begunAt float64)
}

// NewReader returns a reader. journal returns the first offset of the journal that was folded, and
// when the first epoch began that it has.
func NewReader(store view.Reader, journal func() (first int64, begunAt float64)) Reader {
	return Reader{store, journal}
}

// Search returns the newest entries that match.
func (r Reader) Search(q Query) (f Found, err error) {
	if q.JID != "" {
		q.JID = wire.JIDTag(q.JID)
	}
	for _, list := range lists {
		if err := r.search(list, &q, &f); err != nil {
			return f, err
		}
	}
	slices.SortFunc(f.Entries, func(a, b Entry) int { return cmp.Compare(b.Record, a.Record) })
	if len(f.Entries) > q.Limit {
		f.Next = max(f.Next, f.Entries[q.Limit-1].Record)
	}
	// A list that was not searched to its end may have more from there on. The next call returns
	// what the other list has below that.
	f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Record < f.Next })
	if f.Next == 0 {
		f.Older, err = r.Incomplete(q.From)
	}
	return f, err
}

// search looks through one list.
func (r Reader) search(list byte, q *Query, f *Found) error {
	upper := table.After(keyList(list))
	if q.Below > 0 {
		upper = keyEntry(list, q.Below)
	}
	size, err := table.ReadSize(r.store, list)
	if err != nil {
		return err
	}
	found, looked, last := 0, 0, int64(0)
	err = table.Scan(r.store, keyEntry(list, int64(size.From)), upper, true, func(key, value []byte) (bool, error) {
		if found > q.Limit || looked >= q.Most/2 {
			f.Next = max(f.Next, last)
			return false, nil
		}
		looked, last = looked+1, recordOf(key)
		if !bytes.Contains(value, []byte(q.JID)) { // most are of other jobs, and need no decoding
			return true, nil
		}
		e, err := decode(key, value)
		if err == nil && q.match(e) {
			found++
			f.Entries = append(f.Entries, *e)
		}
		return true, err
	})
	f.Searched += looked
	return err
}

// Incomplete reports whether entries from a time on may be missing. There were too many, or the
// journal did not reach back that far when the view was built.
func (r Reader) Incomplete(from float64) (bool, error) {
	first, begunAt := r.journal()
	if from == 0 && first > 1 { // streams begin at 0 or 1
		return true, nil
	}
	for _, list := range lists {
		raw, forgot, err := r.store.Get(keyForgotten(list))
		if err != nil {
			return false, err
		}
		if forgot && from <= math.Float64frombits(binary.BigEndian.Uint64(raw)) {
			return true, nil
		}
	}
	if first <= 1 {
		return false, nil
	}
	oldest := math.Inf(1)
	if begunAt > 0 { // from there on the journal was read
		oldest = begunAt
	}
	for _, list := range lists {
		e, err := end(r.store, list, false)
		if err != nil {
			return false, err
		}
		if e != nil {
			oldest = min(oldest, e.At)
		}
	}
	return from < oldest, nil
}
