package httpapi

import (
	"github.com/millrace-jobs/millrace/httpapi/problem"
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

// envelope stands around a page, as the brokers have it, and more.
type envelope struct {
	Total     int64   `json:"total_count"`
	Filtered  *int64  `json:"filtered_count,omitempty"` // left out where it is not known
	AtLeast   *int64  `json:"filtered_count_at_least,omitempty"`
	Searched  *int64  `json:"searched,omitempty"`   // entries that were looked at
	Unread    int64   `json:"unsearched,omitempty"` // of them, those over 64 KiB
	ItemCount int     `json:"item_count"`
	Page      int64   `json:"page"`
	PageSize  int     `json:"page_size"`
	PageCount *int64  `json:"page_count,omitempty"`
	AsOf      *int64  `json:"as_of,omitempty"`
	Next      *string `json:"next"` // null: there is no more
}

// setCount sets how many entries match, and so how many pages there are.
func (e *envelope) setCount(count int64) {
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
	e := envelope{Total: total, ItemCount: len(items), Page: g.page, PageSize: g.size}
	e.setCount(count)
	return struct {
		envelope
		Items []T `json:"items"`
	}{e, items}
}
