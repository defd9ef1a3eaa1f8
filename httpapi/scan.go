package httpapi

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
)

// scan looks at one entry of a list after the other, until the page is full and counted, or the list or what a call may cost ends.
type scan struct {
	*found
	query    *query
	entries  *tracker.Entries
	most     int64 // entries to look at
	skip     int64 // matches ahead of the page
	tally    bool  // count on when the page is full
	began    time.Time
	patience time.Duration // how long it may count on, once its page is full

	hits    []tracker.Cursor
	kept    []*tracker.Stored // of the hits, where matching needed the record
	matched int64
	last    tracker.Cursor // what was looked at last
	stopped bool           // before the end of the list
	full    bool           // the page is, and more entries match
	scratch []byte
}

func (sc *scan) run(ctx context.Context, from tracker.Cursor) error {
	var fault error
	err := sc.entries.List(sc.query.stream, from, func(r tracker.Row) bool {
		if sc.looked&1023 == 0 {
			if fault = ctx.Err(); fault != nil || sc.full && time.Since(sc.began) > sc.patience {
				sc.stopped = true
				return false
			}
		}
		var more bool
		more, fault = sc.look(&r)
		return more && fault == nil
	})
	if err != nil {
		return err
	}
	if fault != nil {
		return fault
	}
	sc.conclude()
	return sc.load()
}

// look takes one entry in and tells whether to go on.
func (sc *scan) look(r *tracker.Row) (more bool, err error) {
	if sc.query.past(r.At) {
		return false, nil
	}
	if sc.looked == sc.most {
		sc.stopped = true
		return false, nil
	}
	sc.looked++
	sc.last = r.Cursor
	hit, stored, err := sc.matches(r)
	if err != nil || !hit {
		return true, err
	}
	sc.matched++
	switch {
	case sc.matched <= sc.skip:
	case len(sc.hits) < sc.query.size:
		sc.hits = append(sc.hits, r.Cursor)
		if stored != nil {
			sc.kept = append(sc.kept, stored)
		}
	default:
		sc.full, sc.stopped = true, !sc.tally
		return sc.tally, nil
	}
	return !sc.allFound(), nil
}

// allFound tells whether no more entries match: as many were found as there are now, and were when the list was begun.
func (sc *scan) allFound() bool {
	if !sc.exact || sc.query.behind.Set || sc.matched < sc.count {
		return false
	}
	return sc.matched >= sc.query.filter.counted(sc.entries, sc.query.stream)
}

// matches tells whether an entry does, and gives it if it had to be read for that.
func (sc *scan) matches(r *tracker.Row) (bool, *tracker.Stored, error) {
	f := &sc.query.filter
	if !f.row(r) {
		return false, nil, nil
	}
	if !f.looksInside() {
		return true, nil, nil
	}
	stored, err := sc.entries.Get(sc.query.stream, r.Offset)
	if err != nil || stored == nil { // settled a moment ago
		return false, nil, err
	}
	if stored.Raw == nil {
		sc.unread++
		return false, nil, nil
	}
	return f.record(stored, &sc.scratch), stored, nil
}

// conclude says where the list goes on, and whether the count is exact.
func (sc *scan) conclude() {
	switch {
	case sc.full:
		sc.next = sc.hits[len(sc.hits)-1]
	case sc.stopped:
		sc.next = sc.last
	}
	if !sc.exact {
		sc.count, sc.exact = sc.matched, !sc.stopped && !sc.query.behind.Set
	}
}

// load reads the page's entries; those that were settled in the meantime are left out.
func (sc *scan) load() error {
	if sc.query.filter.looksInside() {
		sc.found.entries = sc.kept
		return nil
	}
	offsets := make([]int64, len(sc.hits))
	for i, h := range sc.hits {
		offsets[i] = h.Offset
	}
	stored, err := sc.entries.Load(sc.query.stream, offsets)
	if err != nil {
		return err
	}
	for _, h := range sc.hits {
		if e := stored[h.Offset]; e != nil {
			sc.found.entries = append(sc.found.entries, e)
		}
	}
	return nil
}
