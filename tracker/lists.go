package tracker

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Lists read many entries.
type Lists struct {
	store *view.Store
	heads *listHeads
	rules *gateRules
}

// Row is one line of a list, without the record itself.
type Row struct {
	Cursor
	Queue string
	Class string
	JID   string
}

// List calls fn for the pending entries of a stream by time, from behind a cursor, until fn returns
// false. The newest dead jobs are listed first, and other entries by when they are due.
func (l Lists) List(stream string, behind Cursor, fn func(Row) bool) error {
	return l.scan(stream, behind, func(key, value []byte) bool { return fn(rowOf(key, value)) })
}

// DueAt calls fn for the pending entries of a stream that are due at a time, behind an offset,
// until fn returns false.
func (l Lookup) DueAt(stream string, at time.Time, behind int64, fn func(Row) bool) error {
	c := codes[stream]
	return l.r.Scan(keyList(entryID{c, behind + 1}, at), keyList(entryID{c, noOffset}, at), false, func(key, value []byte) bool {
		return fn(rowOf(key, value))
	})
}

func rowOf(key, value []byte) Row {
	at, offset := listKeyParts(key)
	d := table.Decoder{B: value}
	return Row{Cursor{at, offset, true}, d.Text(), d.Text(), d.Text()}
}

// Skip moves a cursor by n pending entries of a stream, in the order of List, without reading them.
// If fewer are left, it returns the position of the last one, so a List from there is empty.
func (l Lists) Skip(stream string, behind Cursor, n int64) (Cursor, error) {
	if n <= 0 {
		return behind, nil
	}
	last := make([]byte, 0, listKeyLen)
	err := l.scan(stream, behind, func(key, _ []byte) bool {
		last = append(last[:0], key...)
		n--
		return n > 0
	})
	if err != nil || len(last) == 0 {
		return behind, err
	}
	at, offset := listKeyParts(last)
	return Cursor{At: at, Offset: offset, Set: true}, nil
}

// scan reads the rows of a list from behind a cursor.
func (l Lists) scan(stream string, behind Cursor, fn func(key, value []byte) bool) error {
	list := codes[stream]
	if !behind.Set {
		return l.heads.scan(l.store, list, fn)
	}
	lower, upper := listBounds(list, behind)
	lower, upper = l.heads.bounds(list, lower, upper)
	return l.store.Scan(lower, upper, newestFirst(list), fn)
}

// maxParked is how many parked entries Overdue looks past.
const maxParked = 1000

// Overdue returns how long the oldest entry that may fire is past its time, 0 if none is. Parked
// entries wait for a user, and do not count.
func (l Lists) Overdue(now time.Time) (time.Duration, error) {
	var most time.Duration
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries} {
		late, err := l.overdue(stream, now)
		if err != nil {
			return 0, err
		}
		most = max(most, late)
	}
	return most, nil
}

func (l Lists) overdue(stream string, now time.Time) (late time.Duration, err error) {
	looked := 0
	scanned := l.List(stream, Cursor{}, func(r Row) bool {
		if r.At.After(now) {
			return false
		}
		looked++
		var fires bool
		_, fires, err = l.store.Get(keyFire(r.Queue, r.At, entryID{codes[stream], r.Offset}))
		if err != nil {
			return false
		}
		if !fires && looked <= maxParked {
			return true
		}
		late = now.Sub(r.At)
		return false
	})
	if scanned != nil {
		err = scanned
	}
	if err != nil {
		return 0, fmt.Errorf("tracker: oldest due of %s: %w", stream, err)
	}
	return late, nil
}

// OldestDead calls fn for the dead jobs that a queue dropped, or for all others, until fn returns
// false. Those that died first come first.
func (l Lists) OldestDead(dropped bool, fn func(at time.Time, offset int64) bool) error {
	prefix := keyDeads(dropped)
	return l.store.Scan(prefix, table.After(prefix), false, func(key, _ []byte) bool {
		return fn(time.UnixMicro(table.Int(key[len(prefix):])), table.Int(key[len(prefix)+table.IntLen:]))
	})
}

// Snapshot has the entries as they are at one time. Many of them are found quickly, one after
// the other in the order in which they are due. It is for one goroutine, and must be closed soon.
type Snapshot struct {
	Lookup
	at *view.Snapshot
}

// Snapshot returns a snapshot of the entries.
func (l Lists) Snapshot() *Snapshot {
	at := l.store.Snapshot()
	return &Snapshot{Lookup{at, l.rules}, at}
}

// Close releases the snapshot.
func (s *Snapshot) Close() error { return s.at.Close() }

// Load returns the entries of a stream that are pending or in doubt at some offsets. It sorts the
// offsets, because an entry is found sooner after the one before it.
func (l Lists) Load(stream string, offsets []int64) (found map[int64]*Stored, err error) {
	at := l.Snapshot()
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
