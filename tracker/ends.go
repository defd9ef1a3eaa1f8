package tracker

import (
	"errors"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// ends are the jobs of which a record says that they have ended. Each source has a table of its
// own, because the offsets of one say nothing about the age of what another says.
type ends [5]table.Bounded // by source

// fromEnds is the source jobs.ends. The others are the codes of the entry streams.
const fromEnds code = 0

// How many ends are known from jobs.ends, and from each entry stream.
const (
	mostEnds      = 100_000
	mostEndsOther = 20_000
)

// keyEnd is the same for all fires of an entry, since a job that has ended has ended.
func keyEnd(source code, id entryID, jid string) []byte {
	return table.AppendText(id.append([]byte{tableEnds, byte(source)}), jid)
}

func (t *ends) load(r view.Reader) (err error) {
	for source := range t {
		if t[source], err = table.LoadBounded(r, indexEnds, byte(source)); err != nil {
			return err
		}
	}
	return nil
}

func (t *ends) save(tx *view.Tx) (err error) {
	for source := range t {
		err = errors.Join(err, t[source].Save(tx))
	}
	return err
}

// ageOf returns the age of an end of jobs.ends: its place among all ends. A table has one row of an
// age, and a record has up to wire.MaxEnds ends.
func ageOf(offset int64, i int) uint64 { return uint64(offset)*wire.MaxEnds + uint64(i) }

// note notes that a source says that a job has ended. Of several of one source, the newest counts.
func (t *ends) note(tx *view.Tx, source code, age uint64, id entryID, jid string) error {
	most := uint64(mostEndsOther)
	if source == fromEnds {
		most = mostEnds
	}
	return t[source].Keep(tx, age, keyEnd(source, id, jid), nil, most)
}

// has reports whether a job has ended.
func (t *ends) has(id entryID, jid string) bool {
	for source := range t {
		if _, known := t[source].Ages()[string(keyEnd(code(source), id, jid))]; known {
			return true
		}
	}
	return false
}

// forget forgets what a source says.
func (t *ends) forget(tx *view.Tx, source code) error {
	t[source].Reset()
	return errors.Join(table.Clear(tx, tableEnds, byte(source)), table.Clear(tx, indexEnds, byte(source)))
}

// HasEnded reports whether the job of an entry has ended.
func (s Slots) HasEnded(stream string, offset int64, jid string) (bool, error) {
	for source := range len(ends{}) {
		_, ended, err := s.r.Get(keyEnd(code(source), entryID{codes[stream], offset}, jid))
		if err != nil || ended {
			return ended, err
		}
	}
	return false, nil
}
