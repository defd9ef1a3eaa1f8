package tracker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
)

// doubts are the doubtful fires and burials in the order in which they were fired, by epoch and
// number. They are a table of the store, and in memory too, with what must be known to settle them.
// They are settled one after the other: a scan of the store would step over the tombstones of those
// before, each time.
type doubts []doubt

// doubt is what is known of one of them.
type doubt struct {
	fired
	at       place
	tag      string
	lone     bool // only its mark has the job
	returned bool
	late     int64 // as in its mark
}

// fired is the name of a fire or burial.
type fired struct{ epoch, seq int64 }

func (f fired) compare(other fired) int {
	return cmp.Or(cmp.Compare(f.epoch, other.epoch), cmp.Compare(f.seq, other.seq))
}

// scanDoubts returns the rows of the table.
func scanDoubts(r view.Reader) (all doubts, err error) {
	err = r.Scan([]byte{tableDoubtful}, table.After([]byte{tableDoubtful}), false, func(key, value []byte) bool {
		all = append(all, doubt{fired: fired{table.Int(key[1:]), table.Int(key[1+table.IntLen:])}, at: placeOf(value)})
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
			return nil, fmt.Errorf("tracker: doubtful %s@%d has no mark: the state dir is damaged, remove it", all[i].at.name(), all[i].at.offset)
		}
		all[i].note(m)
	}
	return all, err
}

func (d *doubt) note(m *mark) {
	d.tag, d.lone, d.returned, d.late = m.tag, len(m.body) > 0, m.returned, m.late
}

func (all doubts) search(f fired) (at int, found bool) {
	return slices.BinarySearchFunc(all, f, func(d doubt, f fired) int { return d.compare(f) })
}

func (all doubts) find(f fired) (d doubt, found bool) {
	at, found := all.search(f)
	if found {
		d = all[at]
	}
	return d, found
}

// between returns those from one up to, but not including, another.
func (all doubts) between(from, to fired) []doubt {
	first, _ := all.search(from)
	end, _ := all.search(to)
	return slices.Clone(all[first:max(first, end)])
}

// add notes what the mark of something doubtful says.
func (all *doubts) add(tx *view.Tx, p place, m *mark) error {
	f := fired{m.epoch, m.seq}
	at, found := all.search(f)
	if !found {
		*all = slices.Insert(*all, at, doubt{fired: f})
	}
	d := &(*all)[at]
	d.note(m)
	if found && d.at == p {
		return nil
	}
	d.at = p
	return tx.Set(keyDoubtful(f.epoch, f.seq), p.append(nil))
}

// remove notes that something is no longer doubtful. Mostly that is the oldest.
func (all *doubts) remove(tx *view.Tx, f fired) error {
	switch at, found := all.search(f); {
	case found && at == 0:
		*all = (*all)[1:]
	case found:
		*all = slices.Delete(*all, at, at+1)
	}
	return tx.Delete(keyDoubtful(f.epoch, f.seq))
}
