package tracker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

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
