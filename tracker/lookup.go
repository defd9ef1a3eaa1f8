package tracker

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/view"
)

// Lookup finds single entries.
type Lookup struct{ r view.Reader }

// Moment looks up entries as they stand at one moment: the way to find many, one after the other in the order in which they are due.
type Moment struct {
	Lookup
	at *view.Moment
}

// Moment gives the entries as they stand now. It is soon closed.
func (t *Entries) Moment() *Moment {
	at := t.store.Moment()
	return &Moment{Lookup{at}, at}
}

// Close ends it.
func (m *Moment) Close() error { return m.at.Close() }

// Get gives an entry that is pending or doubtful; nil if there is none.
func (l Lookup) Get(stream string, offset int64) (*Stored, error) {
	return storedAt(l.r, place{codes[stream], offset})
}

// Load gives the entries of a stream that are pending or doubtful at some offsets, which it sorts: each is found the sooner for the one before it.
func (t *Entries) Load(stream string, offsets []int64) (found map[int64]*Stored, err error) {
	at := t.Moment()
	defer func() { err = errors.Join(err, at.Close()) }()
	slices.Sort(offsets)
	found = make(map[int64]*Stored, len(offsets))
	for _, o := range offsets {
		s, err := at.Get(stream, o)
		if err != nil {
			return nil, err
		}
		if s != nil {
			found[o] = s
		}
	}
	return found, nil
}

// Pending tells whether an entry is pending.
func (l Lookup) Pending(s *Stored) (bool, error) {
	_, ok, err := l.r.Get(keyList(s.listed(), s.At))
	return ok, err
}

// Due calls fn for the entries of a queue that may fire, in due order, behind a key, until fn returns false.
func (l Lookup) Due(queue string, behind DueKey, fn func(DueKey) bool) error {
	prefix := keyFireQueue(queue)
	lower := slices.Concat(prefix, behind.bytes())
	if behind.Stream != "" {
		lower = append(lower, 0)
	}
	return l.r.Scan(lower, after(prefix), false, func(key, _ []byte) bool {
		key = key[len(prefix):]
		p := placeOf(key[intLen:])
		return fn(DueKey{time.UnixMicro(intOf(key)).UTC(), p.name(), p.offset})
	})
}

// Repeated tells whether several pending entries of a stream seem to have a jid. It reads none of them.
func (l Lookup) Repeated(stream, jid string) (bool, error) {
	offsets, err := l.offsets(stream, jid, 2)
	return len(offsets) > 1, err
}

// offsets gives where the pending entries of a stream stand whose jid has the same hash.
func (l Lookup) offsets(stream, jid string, most int) (all []int64, err error) {
	prefix := keyJIDs(codes[stream], jid)
	err = l.r.Scan(prefix, after(prefix), false, func(key, _ []byte) bool {
		all = append(all, intOf(key[len(prefix):]))
		return len(all) < most
	})
	return all, err
}
