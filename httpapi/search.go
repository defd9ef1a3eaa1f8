package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// finder finds pending entries.
type finder struct {
	entries      *tracker.Reader
	fingerprints *fingerprints
	answers      *answerCache
	limits       *limits
}

type found struct {
	entries []*tracker.Stored
	next    tracker.Cursor // set if more entries follow, or may
	asOf    int64          // the offset of the stream up to which the view had read
	total   int64          // entries in the set
	count   int64          // entries that match, if exact; else those that this call saw
	exact   bool
	looked  int64 // entries that were looked at
	unread  int64 // of them, those whose record is in the stream only
}

// find returns the page that a query asks for. With tally it counts on when the page is full.
func (f *finder) find(ctx context.Context, q *query, tally bool) (*found, error) {
	e := f.entries
	asOf, err := e.Position(q.stream) // first: later entries may show, too
	if err != nil {
		return nil, err
	}
	result := &found{asOf: asOf, total: e.Total(q.stream)}
	if result.exact = q.filter.countable(); result.exact {
		result.count = q.filter.count(e.Counts, q.stream)
	}
	switch {
	case q.filter.JID != "":
		return result, f.findJID(q, result)
	case result.exact && q.skip >= result.count && !q.behind.Set:
		return result, nil
	}
	sc := &scan{query: q, found: result, entries: e, most: f.limits.searched, skip: q.skip, tally: tally && !result.exact, began: time.Now(), patience: f.limits.tally}
	from := q.start()
	if q.filter.unset() {
		if from, err = e.Skip(q.stream, from, q.skip); err != nil {
			return nil, err
		}
		sc.skip = 0
	}
	return result, sc.run(ctx, from)
}

// findJID finds by jid, which has an index.
func (f *finder) findJID(q *query, result *found) error {
	all, err := q.withJID(f.entries.Lookup)
	if err != nil {
		return err
	}
	var scratch []byte
	result.exact, result.looked = true, int64(len(all))
	for _, e := range all {
		row := rowOf(e)
		if !q.filter.MatchRow(&row) || !q.filter.Within(e.At) {
			continue
		}
		if q.filter.LooksInside() && e.Raw == nil {
			result.unread++
			continue
		}
		if !q.filter.record(e, &scratch) {
			continue
		}
		result.count++
		switch {
		case q.behind.Set && q.compare(row.Cursor, q.behind) <= 0, result.count <= q.skip:
		case len(result.entries) == q.size:
			result.next = cursorOf(result.entries[q.size-1])
		default:
			result.entries = append(result.entries, e)
		}
	}
	return nil
}

// withJID returns the entries with the filter's jid, in the list's own order.
func (q *query) withJID(entries tracker.Lookup) ([]*tracker.Stored, error) {
	all, err := entries.Find(q.stream, q.filter.JID)
	slices.SortStableFunc(all, func(a, b *tracker.Stored) int { return q.compare(cursorOf(a), cursorOf(b)) })
	return all, err
}

func (q *query) compare(a, b tracker.Cursor) int {
	if q.newestFirst() {
		a, b = b, a
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Offset, b.Offset))
}

func rowOf(e *tracker.Stored) tracker.Row {
	return tracker.Row{Cursor: cursorOf(e), Queue: e.Queue, Class: e.Class, JID: e.JID}
}

func cursorOf(e *tracker.Stored) tracker.Cursor {
	return tracker.Cursor{At: e.At, Offset: e.Offset, Set: true}
}

// scan looks at the entries of a list until the page is full and counted, or enough was looked at.
type scan struct {
	*found
	query    *query
	entries  *tracker.Reader
	most     int64 // entries to look at
	skip     int64 // matches before the page
	tally    bool  // count on when the page is full
	began    time.Time
	patience time.Duration // for counting on

	hits    []tracker.Cursor
	kept    []*tracker.Stored // of the hits, where matching needed the record
	matched int64
	last    tracker.Cursor // the last entry that was looked at
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

// look takes one entry in, and reports whether to continue.
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

// allFound reports whether the scan has found all that match, now and when it began.
func (sc *scan) allFound() bool {
	if !sc.exact || sc.query.behind.Set || sc.matched < sc.count {
		return false
	}
	return sc.matched >= sc.query.filter.count(sc.entries.Counts, sc.query.stream)
}

// matches reports whether an entry does, and returns it if it had to be read for that.
func (sc *scan) matches(r *tracker.Row) (bool, *tracker.Stored, error) {
	f := &sc.query.filter
	if !f.MatchRow(r) {
		return false, nil, nil
	}
	if !f.LooksInside() {
		return true, nil, nil
	}
	stored, err := sc.entries.Get(sc.query.stream, r.Offset)
	if err != nil || stored == nil { // it has left the set a moment ago
		return false, nil, err
	}
	if stored.Raw == nil {
		sc.unread++
		return false, nil, nil
	}
	return f.record(stored, &sc.scratch), stored, nil
}

// conclude says where the list continues, and whether the count is exact.
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

// load reads the page's entries, without those that have left the set meanwhile.
func (sc *scan) load() error {
	if sc.query.filter.LooksInside() {
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

// failure returns the error whose fingerprint is in a filter; nil if there is none, or if it is not
// known. Each entry that was found has this error.
func (f *finder) failure(q *query, r *found) (*answer.Failure, error) {
	if wire.IsFingerprint(q.filter.Error) && len(r.entries) > 0 {
		first := rowOf(r.entries[0])
		if _, _, err := f.fingerprints.of(f.entries.Lookup, q.stream, &first); err != nil {
			return nil, err
		}
	}
	return f.fingerprints.named(q.filter.Error), nil
}
