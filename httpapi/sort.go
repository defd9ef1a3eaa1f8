package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
)

// sort sorts rows. Rows with equal keys keep the list's own order; rows without a key come last.
func (s sorting) sort(rows []sortRow) {
	if s.key == sortAt {
		slices.Reverse(rows)
		return
	}
	slices.SortStableFunc(rows, func(a, b sortRow) int {
		switch {
		case a.none != b.none && a.none:
			return 1
		case a.none != b.none:
			return -1
		case s.reversed:
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.number, b.number))
	})
}

// sortedList is a sorted list: all entries that match, and the result of a page without them.
type sortedList struct {
	offsets []int64
	page    found
}

// findSorted returns a page of a sorted list. All entries that match are read, once for all pages.
func (f *finder) findSorted(r *http.Request, q *query) (*found, error) {
	made, err := f.answers.get(r.Context(), sortedKey(r, q), 0, func(ctx context.Context) (any, error) { return f.sort(ctx, q) })
	if err != nil {
		return nil, err
	}
	list := made.(*sortedList)
	result := list.page
	from := min(q.skip, result.count)
	offsets := list.offsets[from:min(from+int64(q.size), result.count)]
	stored, err := f.entries.Load(q.stream, slices.Clone(offsets))
	if err != nil {
		return nil, err
	}
	for _, offset := range offsets {
		if e := stored[offset]; e != nil { // else it has left the set since
			result.entries = append(result.entries, e)
		}
	}
	return &result, nil
}

// sortedKey is the same for all pages of a sorted list. Filters do not match what is hidden.
func sortedKey(r *http.Request, q *query) string {
	asked := url.Values{}
	for name, values := range r.URL.Query() {
		if !slices.Contains(pageParams, name) {
			asked[name] = values
		}
	}
	return fmt.Sprint("sorted ", q.stream, "?", asked.Encode(), q.filter.hide != nil)
}

func (f *finder) sort(ctx context.Context, q *query) (*sortedList, error) {
	asOf, err := f.entries.Position(q.stream) // first, as in find
	if err != nil {
		return nil, err
	}
	sc := &scan{query: q, found: &found{}, entries: f.entries}
	rows, err := f.matching(ctx, sc)
	if err != nil {
		return nil, err
	}
	q.sorting.sort(rows)
	list := &sortedList{offsets: make([]int64, len(rows))}
	list.page = found{asOf: asOf, total: f.entries.Total(q.stream), count: int64(len(rows)), exact: true, looked: sc.looked, unread: sc.unread}
	for i := range rows {
		list.offsets[i] = rows[i].offset
	}
	return list, nil
}

// matching returns all rows that match, in the list's own order.
func (f *finder) matching(ctx context.Context, sc *scan) (rows []sortRow, err error) {
	each := func(r *tracker.Row) error {
		hit, stored, err := sc.matches(r)
		if err != nil || !hit {
			return err
		}
		row, err := f.sortRow(sc.query, r, stored)
		rows = append(rows, row)
		return err
	}
	if sc.query.filter.JID != "" {
		return rows, sc.eachWithJID(each)
	}
	most := f.limits.searched
	var fault error
	err = sc.entries.List(sc.query.stream, sc.query.start(), func(r tracker.Row) bool {
		switch {
		case sc.query.past(r.At):
			return false
		case sc.looked == most:
			fault = problem.BadRequest("the list is too long to be sorted: at most %d entries are, so narrow it down with from and to", most)
		case sc.looked&1023 == 0:
			fault = ctx.Err()
		}
		if sc.looked++; fault == nil {
			fault = each(&r)
		}
		return fault == nil
	})
	return rows, cmp.Or(fault, err)
}

// eachWithJID calls fn for the entries with the filter's jid, in the list's own order.
func (sc *scan) eachWithJID(fn func(*tracker.Row) error) error {
	all, err := sc.query.withJID(sc.entries.Lookup)
	if err != nil {
		return err
	}
	for _, e := range all {
		sc.looked++
		if row := rowOf(e); sc.query.filter.Within(row.At) {
			if err := fn(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortRow is an entry of a list and its key: a text or a number.
type sortRow struct {
	offset int64
	text   string
	number float64
	none   bool // the entry has no key
}

// sortRow returns a row with its key. stored is nil if the entry has not been read yet.
func (f *finder) sortRow(q *query, r *tracker.Row, stored *tracker.Stored) (row sortRow, err error) {
	row.offset = r.Offset
	switch q.sorting.key {
	case sortAt:
		return row, nil
	case sortClass:
		row.text = r.Class
		return row, nil
	case sortQueue:
		row.text = r.Queue
		return row, nil
	case sortError:
		failed, _, err := f.fingerprints.of(f.entries.Lookup, q.stream, r)
		if row.none = failed == nil || failed.ErrorClass == ""; !row.none {
			row.text = failed.ErrorClass
		}
		return row, err
	}
	if stored == nil {
		if stored, err = f.entries.Get(q.stream, r.Offset); err != nil || stored == nil {
			row.none = true
			return row, err
		}
	}
	if q.sorting.key == sortAttempt {
		row.number = float64(stored.Attempt)
		return row, nil
	}
	failedAt := gjson.GetBytes(stored.Raw, "failed_at")
	row.none, row.number = failedAt.Type != gjson.Number, failedAt.Num
	return row, nil
}
