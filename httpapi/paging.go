package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

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

// parsePaging reads page and page_size, as the brokers have them, or limit and offset.
func parsePaging(p problem.Params) (g paging, err error) {
	var size int64
	if g.paged = p["page"] != ""; g.paged {
		if err := p.Without("page", "limit", "offset"); err != nil {
			return g, err
		}
		if g.page, err = p.Number("page", 1, 1, maxPage); err != nil {
			return g, err
		}
		size, err = p.Number("page_size", defaultSize, 1, maxSize)
		g.size, g.skip = int(size), (g.page-1)*size
		return g, err
	}
	if p["page_size"] != "" {
		return g, problem.BadRequest("parameter page_size needs page: without it, use limit")
	}
	if size, err = p.Number("limit", defaultSize, 1, maxSize); err != nil {
		return g, err
	}
	g.size = int(size)
	g.skip, err = p.Number("offset", 0, 0, maxPage*maxSize)
	return g, err
}

// envelope stands around a page, as the brokers have it, and more.
type envelope struct {
	Total     int64   `json:"total_count"`
	Filtered  *int64  `json:"filtered_count,omitempty"` // left out where it is not known
	AtLeast   *int64  `json:"filtered_count_at_least,omitempty"`
	Searched  *int64  `json:"searched,omitempty"`   // entries that were looked at for the page and its count
	Unread    int64   `json:"unsearched,omitempty"` // of them, those over 64 KiB: no filter that looks inside matches
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

// writePage answers with a part of a list that is in memory; total counts it without a filter.
func writePage[T any](c echo.Context, g paging, total int, all []T) error {
	from := min(g.skip, int64(len(all)))
	items := append([]T{}, all[from:min(from+int64(g.size), int64(len(all)))]...)
	return writeItems(c, g, int64(total), int64(len(all)), items)
}

// writeItems answers with a page of a list of which count items match.
func writeItems[T any](c echo.Context, g paging, total, count int64, items []T) error {
	if !g.paged {
		return c.JSON(http.StatusOK, items)
	}
	e := envelope{Total: total, ItemCount: len(items), Page: g.page, PageSize: g.size}
	e.setCount(count)
	return c.JSON(http.StatusOK, struct {
		envelope
		Items []T `json:"items"`
	}{e, items})
}
