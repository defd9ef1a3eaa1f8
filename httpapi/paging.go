package httpapi

import (
	"fmt"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
)

// Bounds of a list.
const (
	defaultSize = 100
	maxSize     = 500
	maxPage     = 1_000_000_000
)

var pageParams = []string{"page", "page_size", "limit", "offset"}

// paging is the part of a list that is asked for.
type paging struct {
	paged bool // with page: the answer is an envelope, else a bare array
	page  int64
	size  int   // items at most
	skip  int64 // items before the first
}

// readPaging reads page and page_size, as the brokers have them, or limit and offset.
func readPaging(in *problem.Request) (g paging) {
	if g.paged = in.Text("page") != ""; g.paged {
		in.Without("page", "limit", "offset")
		g.page = in.Number("page", 1, 1, maxPage)
		g.size = int(in.Number("page_size", defaultSize, 1, maxSize))
		g.skip = (g.page - 1) * int64(g.size)
		return g
	}
	if in.Text("page_size") != "" {
		in.BadRequest("parameter page_size needs page: without it, use limit")
	}
	g.size = int(in.Number("limit", defaultSize, 1, maxSize))
	g.skip = in.Number("offset", 0, 0, maxPage*maxSize)
	return g
}

// setCount sets how many entries match, and so how many pages there are.
func setCount(e *answer.Envelope, count int64) {
	pages := (count + int64(e.PageSize) - 1) / int64(e.PageSize)
	e.Filtered, e.PageCount = &count, &pages
}

// pageOf returns a part of a list that is in memory; total counts it without a filter.
func pageOf[T any](g paging, total int, all []T) any {
	from := min(g.skip, int64(len(all)))
	items := append([]T{}, all[from:min(from+int64(g.size), int64(len(all)))]...)
	return pageWith(g, int64(total), int64(len(all)), items)
}

// pageWith returns a page of a list of which count items match.
func pageWith[T any](g paging, total, count int64, items []T) any {
	if !g.paged {
		return items
	}
	e := answer.Envelope{Total: total, ItemCount: len(items), Page: g.page, PageSize: g.size}
	setCount(&e, count)
	return answer.Page[T]{Envelope: e, Items: items}
}

func badCursor(in *problem.Request) {
	in.BadRequest("parameter next is %q: it must be what an answer gave as next", problem.Shorten(in.Text("next")))
}

func cursorText(c tracker.Cursor) string { return fmt.Sprintf("%d,%d", c.At.UnixMicro(), c.Offset) }
