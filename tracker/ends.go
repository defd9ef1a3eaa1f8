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
	maxEnds      = 100_000
	maxEndsOther = 20_000
)

// keyEnds is the same for all fires of an entry, since a job that has ended has ended.
func keyEnds(s *wire.Slot) []byte {
	return table.AppendText(entryID{codes[s.Stream], s.Offset}.append([]byte{tableEnds}), s.JIDTag)
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

// note notes that the record of a source at an offset says that a job has ended. Of several, the
// newest counts: the order in which the streams are read must not matter.
func (t *ends) note(tx *view.Tx, source code, offset int64, s *wire.Slot) error {
	key, most := append(keyEnds(s), byte(source)), uint64(maxEndsOther)
	if source == fromEnds {
		most = maxEnds
	}
	return t[source].Keep(tx, uint64(offset), key, nil, most)
}

// has reports whether a job has ended.
func (t *ends) has(s *wire.Slot) bool {
	key := keyEnds(s)
	for source := range t {
		if _, known := t[source].Ages()[string(append(key, byte(source)))]; known {
			return true
		}
	}
	return false
}

// forget forgets what a source says.
func (t *ends) forget(tx *view.Tx, source code) error {
	for key := range t[source].Ages() {
		if err := tx.Delete([]byte(key)); err != nil {
			return err
		}
	}
	t[source].Reset()
	return table.Clear(tx, indexEnds, byte(source))
}

// hasEnded reports whether a job has ended, for a reader.
func hasEnded(r view.Reader, s *wire.Slot) (ended bool, err error) {
	prefix := keyEnds(s)
	err = r.Scan(prefix, table.After(prefix), false, func(_, _ []byte) bool {
		ended = true
		return false
	})
	return ended, err
}
