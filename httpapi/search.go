package httpapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxSearched = 100_000                // entries that one call looks at
	maxTally    = 150 * time.Millisecond // how long a call may take, once its page is full, to count further
)

// found is what a search came up with.
type found struct {
	entries []*tracker.Stored
	next    tracker.Cursor // set if there is, or may be, more behind it
	asOf    int64          // the offset of the stream up to which the view had been read
	total   int64          // entries in the set
	count   int64          // entries that match, where exact; else those that this call saw
	exact   bool
	looked  int64 // entries that were looked at, to find those that match
	unread  int64 // of them, those whose record is large and stays in the stream: they match no filter that looks inside
}

// search finds the entries that a query asks for. tally has it count on when it has found them.
func (s *Server) search(ctx context.Context, q *query, tally bool) (*found, error) {
	e := s.cfg.Entries
	asOf, err := e.Position(q.stream) // first: what is folded from here on may show, but is not in as_of
	if err != nil {
		return nil, err
	}
	f := &found{asOf: asOf, total: e.Total(q.stream)}
	if f.exact = q.filter.countable(); f.exact {
		f.count = q.filter.counted(e, q.stream)
	}
	switch {
	case q.filter.jid != "":
		return f, s.searchJID(q, f)
	case f.exact && q.skip >= f.count && !q.behind.Set:
		return f, nil
	}
	scan := &scan{query: q, found: f, entries: e, most: s.maxSearched, skip: q.skip, tally: tally && !f.exact, began: time.Now(), patience: s.maxTally}
	from := q.start()
	if q.filter.unset() {
		if from, err = e.Skip(q.stream, from, q.skip); err != nil {
			return nil, err
		}
		scan.skip = 0
	}
	return f, scan.run(ctx, from)
}

// searchJID finds by jid, of which there is an index.
func (s *Server) searchJID(q *query, f *found) error {
	all, err := q.withJID(s.cfg.Entries)
	if err != nil {
		return err
	}
	newestFirst := q.stream == wire.DeadJobs
	var scratch []byte
	f.exact, f.looked = true, int64(len(all))
	for _, e := range all {
		row := rowOf(e)
		if !q.filter.row(&row) || !q.filter.within(e.At) {
			continue
		}
		if q.filter.looksInside() && e.Raw == nil {
			f.unread++
			continue
		}
		if !q.filter.record(e, &scratch) {
			continue
		}
		f.count++
		switch {
		case q.behind.Set && inOrder(row.Cursor, q.behind, newestFirst) <= 0, f.count <= q.skip:
		case len(f.entries) == q.size:
			f.next = cursorOf(f.entries[q.size-1])
		default:
			f.entries = append(f.entries, e)
		}
	}
	return nil
}

// withJID returns the entries with the jid that the filter names, in the list's own order.
func (q *query) withJID(entries *tracker.Entries) ([]*tracker.Stored, error) {
	all, err := entries.Find(q.stream, q.filter.jid)
	newestFirst := q.stream == wire.DeadJobs
	slices.SortStableFunc(all, func(a, b *tracker.Stored) int { return inOrder(cursorOf(a), cursorOf(b), newestFirst) })
	return all, err
}

func rowOf(e *tracker.Stored) tracker.Row {
	return tracker.Row{Cursor: cursorOf(e), Queue: e.Queue, Class: e.Class, JID: e.JID}
}

func cursorOf(e *tracker.Stored) tracker.Cursor {
	return tracker.Cursor{At: e.At, Offset: e.Offset, Set: true}
}

// inOrder compares two places in a list.
func inOrder(a, b tracker.Cursor, newestFirst bool) int {
	if newestFirst {
		a, b = b, a
	}
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Offset, b.Offset))
}
