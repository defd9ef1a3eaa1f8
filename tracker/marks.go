package tracker

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

// mark is what the journal says of an entry. It is kept while the entry is in doubt, or has not
// been read yet. That of a replaced entry is kept too: what the journal says of it, read later, was
// before it was replaced.
type mark struct {
	state   markState
	tag     string // wire.JIDTag of the entry
	epoch   int64  // in doubt: the fire; below zero: of a journal that is gone
	seq     int64  // replaced: the entry that stands for it
	late    int64  // in doubt: where the journal has the fire, if its leader had been followed already; else 0
	op      string
	reason  string // parked
	command string // in doubt: the id of the command that asked for it
	actor   string // in doubt: the user who did
	bulk    string // in doubt: the operation that it is part of
	body    []byte // in doubt and without an entry: the job as it was fired

	returned bool // in doubt and without an entry: it is known that the fire did not arrive
}

type markState byte

const (
	settled markState = iota + 1
	inDoubt
	parked
	replaced // by a later entry; kept until low water passes
)

// isReturned is added to the state in the store.
const isReturned = 0x80

func (m *mark) encode() []byte {
	b := []byte{byte(m.state)}
	if m.returned {
		b[0] |= isReturned
	}
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, m.epoch), m.seq), m.late)
	for _, t := range []string{m.tag, m.op, m.reason, m.command, m.actor, m.bulk} {
		b = table.AppendText(b, t)
	}
	return append(b, m.body...)
}

var errEmptyMark = errors.New("tracker: empty mark")

// stateOf returns the state of an encoded mark.
func stateOf(b []byte) (markState, error) {
	if len(b) == 0 {
		return 0, errEmptyMark
	}
	return markState(b[0] &^ isReturned), nil
}

func markAt(r view.Reader, id entryID) (*mark, error) {
	raw, ok, err := r.Get(keyMark(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeMark(raw)
}

func decodeMark(b []byte) (*mark, error) {
	state, err := stateOf(b)
	if err != nil {
		return nil, err
	}
	m := &mark{state: state, returned: b[0]&isReturned != 0}
	d := table.Decoder{B: b[1:]}
	m.epoch, m.seq, m.late = d.Int(), d.Int(), d.Int()
	m.tag, m.op, m.reason, m.command, m.actor, m.bulk = d.Text(), d.Text(), d.Text(), d.Text(), d.Text(), d.Text()
	if d.Bad {
		return nil, fmt.Errorf("tracker: mark is damaged")
	}
	m.body = d.B
	return m, nil
}

// doubts are the fires and burials in doubt, in the order in which they were fired, by epoch and
// number. They are a table of the store, and in memory too, with what must be known to settle them.
// They are settled one after the other: a scan of the store would step over the tombstones of those
// before, each time.
type doubts []doubt

// doubt is one of them.
type doubt struct {
	dispatchID
	at            entryID
	tag           string
	onlyJournaled bool // only its mark has the job
	returned      bool
	late          int64 // as in its mark
}

// dispatchID is the epoch and the number of a fire or burial.
type dispatchID struct{ epoch, seq int64 }

func (f dispatchID) compare(other dispatchID) int {
	return cmp.Or(cmp.Compare(f.epoch, other.epoch), cmp.Compare(f.seq, other.seq))
}

// scanDoubts returns the rows of the table.
func scanDoubts(r view.Reader) (all doubts, err error) {
	err = r.Scan([]byte{tableDoubts}, table.After([]byte{tableDoubts}), false, func(key, value []byte) bool {
		all = append(all, doubt{dispatchID: dispatchID{table.Int(key[1:]), table.Int(key[1+table.IntLen:])}, at: entryIDOf(value)})
		return true
	})
	return all, err
}

func loadDoubts(r view.Reader) (doubts, error) {
	all, err := scanDoubts(r)
	for i := range all {
		m, fault := markAt(r, all[i].at)
		if err = cmp.Or(err, fault); err != nil {
			return nil, err
		}
		if m == nil {
			return nil, fmt.Errorf("tracker: entry %s@%d is in doubt and has no mark: the state directory is damaged, remove it", all[i].at.name(), all[i].at.offset)
		}
		all[i].note(m)
	}
	return all, err
}

func (d *doubt) note(m *mark) {
	d.tag, d.onlyJournaled, d.returned, d.late = m.tag, len(m.body) > 0, m.returned, m.late
}

func (all doubts) search(f dispatchID) (at int, found bool) {
	return slices.BinarySearchFunc(all, f, func(d doubt, f dispatchID) int { return d.compare(f) })
}

func (all doubts) find(f dispatchID) (d doubt, found bool) {
	at, found := all.search(f)
	if found {
		d = all[at]
	}
	return d, found
}

// between returns those from one up to, but not including, another.
func (all doubts) between(from, to dispatchID) []doubt {
	first, _ := all.search(from)
	end, _ := all.search(to)
	return slices.Clone(all[first:max(first, end)])
}

// add notes the mark of an entry in doubt.
func (all *doubts) add(tx *view.Tx, id entryID, m *mark) error {
	f := dispatchID{m.epoch, m.seq}
	at, found := all.search(f)
	if !found {
		*all = slices.Insert(*all, at, doubt{dispatchID: f})
	}
	d := &(*all)[at]
	d.note(m)
	if found && d.at == id {
		return nil
	}
	d.at = id
	return tx.Set(keyDoubt(f.epoch, f.seq), id.append(nil))
}

// remove notes that a fire or burial is no longer in doubt. Mostly that is the oldest.
func (all *doubts) remove(tx *view.Tx, f dispatchID) error {
	switch at, found := all.search(f); {
	case found && at == 0:
		*all = (*all)[1:]
	case found:
		*all = slices.Delete(*all, at, at+1)
	}
	return tx.Delete(keyDoubt(f.epoch, f.seq))
}

// awaited are the offsets below which no settled mark waits for its entry, by stream.
type awaited map[code]int64

func (a awaited) load(r view.Reader) (err error) {
	for s := range names {
		if a[s], err = firstSettled(r, s, minOffset); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the settled marks of offsets at which a stream turned out to have no entry: the
// reader is past them.
func (a awaited) sweep(tx *view.Tx, at entryID) error {
	lowest, ok := a[at.stream]
	if !ok || lowest >= at.offset {
		return nil
	}
	var stale []entryID
	next := int64(noOffset)
	err := scanSettled(tx, at.stream, lowest, func(id entryID) bool {
		if id.offset >= at.offset {
			next = id.offset
			return false
		}
		stale = append(stale, id)
		return true
	})
	if err != nil {
		return err
	}
	a[at.stream] = next
	for _, id := range stale {
		if err := tx.Delete(keyMark(id)); err != nil {
			return err
		}
	}
	return nil
}

// expect notes that a settled mark waits for its entry.
func (a awaited) expect(id entryID) {
	if lowest, ok := a[id.stream]; !ok || id.offset < lowest {
		a[id.stream] = id.offset
	}
}

// arrived notes that a settled mark no longer waits. Their entries come in order when a view is
// built.
func (a awaited) arrived(id entryID) {
	if a[id.stream] == id.offset {
		a[id.stream]++
	}
}

func firstSettled(r view.Reader, stream code, from int64) (int64, error) {
	first := int64(noOffset)
	err := scanSettled(r, stream, from, func(id entryID) bool {
		first = id.offset
		return false
	})
	return first, err
}

func scanSettled(r view.Reader, stream code, from int64, fn func(entryID) bool) error {
	lower := keyMark(entryID{stream, from})
	return table.Scan(r, lower, table.After([]byte{tableMark, byte(stream)}), false, func(key, value []byte) (bool, error) {
		if is, err := stateOf(value); err != nil || is != settled {
			return true, err
		}
		return fn(entryIDOf(key[1:])), nil
	})
}

// passed reports whether the view has read past an entry. Then one that is not there will not come.
func passed(tx *view.Tx, id entryID) (bool, error) {
	if id.stream == 0 {
		return true, nil
	}
	read, err := tx.Position(id.name())
	return id.offset <= read, err
}
