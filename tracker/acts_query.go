package tracker

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// ActQuery says which acts are asked for. What is empty does not count.
type ActQuery struct {
	Actor, JID, Op string
	From, To       float64 // From ≤ at < To
	Below          int64   // only acts that the journal has below this offset; 0: all
	Limit          int     // acts at most
	Most           int     // acts to look at
}

// ActsFound is what was found, the newest first.
type ActsFound struct {
	Acts     []Act
	Searched int
	Next     int64 // go on below this offset of the journal; 0: there is no more
	Older    bool  // there may have been older ones that match, which are not kept
}

func (q *ActQuery) match(a *Act) bool {
	return (q.Actor == "" || a.Actor == q.Actor) && (q.Op == "" || a.Op == q.Op) && (q.JID == "" || a.JID == q.JID) &&
		(q.From == 0 || a.At >= q.From) && (q.To == 0 || a.At < q.To)
}

// Acts gives what was done, the newest first.
func (t *Entries) Acts(q ActQuery) (f ActsFound, err error) {
	if q.JID != "" {
		q.JID = wire.JIDTag(q.JID)
	}
	for _, list := range []byte{actsSingle, actsMany} {
		if err := t.searchActs(list, &q, &f); err != nil {
			return f, err
		}
	}
	slices.SortFunc(f.Acts, func(a, b Act) int { return cmp.Compare(b.Record, a.Record) })
	if len(f.Acts) > q.Limit {
		f.Next = max(f.Next, f.Acts[q.Limit-1].Record)
	}
	// A list that was not searched to its end may have more from there on: what the other one has below that comes with the next call.
	f.Acts = slices.DeleteFunc(f.Acts, func(a Act) bool { return a.Record < f.Next })
	if f.Next == 0 {
		f.Older, err = t.ActsForgotten(q.From)
	}
	return f, err
}

// searchActs looks through one list.
func (t *Entries) searchActs(list byte, q *ActQuery, f *ActsFound) error {
	upper := after([]byte{tableAct, list})
	if q.Below > 0 {
		upper = keyAct(list, q.Below)
	}
	size, err := readRing(t.store, list)
	if err != nil {
		return err
	}
	found, looked, last := 0, 0, int64(0)
	var fault error
	err = t.store.Scan(keyAct(list, int64(size.from)), upper, true, func(key, value []byte) bool {
		if found > q.Limit || looked >= q.Most/2 {
			f.Next = max(f.Next, last)
			return false
		}
		looked, last = looked+1, intOf(key[2:])
		if !bytes.Contains(value, []byte(q.JID)) { // most acts are of other jobs: they need not be decoded
			return true
		}
		var a *Act
		if a, fault = decodeAct(key, value); fault != nil {
			return false
		}
		if q.match(a) {
			found++
			f.Acts = append(f.Acts, *a)
		}
		return true
	})
	f.Searched += looked
	return cmp.Or(err, fault)
}

// ActsForgotten reports whether acts from a time on may not be kept: there were too many, or the journal did not reach back that far when the
// view was built.
func (t *Entries) ActsForgotten(from float64) (bool, error) {
	first := t.State().JournalFirst
	if from == 0 && first > 1 { // streams begin at 0 or 1
		return true, nil
	}
	for _, list := range []byte{actsSingle, actsMany} {
		raw, forgot, err := t.store.Get([]byte{tableMeta, list, 't'})
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
	if begun := t.State().BegunAt; begun > 0 { // from there on the journal was read
		oldest = begun
	}
	for _, list := range []byte{actsSingle, actsMany} {
		a, err := firstAct(t.store, list)
		if err != nil {
			return false, err
		}
		if a != nil {
			oldest = min(oldest, a.At)
		}
	}
	return from < oldest, nil
}
