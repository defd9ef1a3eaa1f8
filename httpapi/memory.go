package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

var pageParams = []string{"page", "page_size", "limit", "offset"}

// parsePage reads which part of a list is asked for.
func pageOf(p problem.Params) (*query, error) {
	q := &query{}
	return q, q.readPaging(p)
}

// writeList answers with a part of a list that is in memory; total is how many there are without a filter.
func writeList[T any](c echo.Context, q *query, total int, all []T) error {
	count := int64(len(all))
	from := min(q.skip, count)
	items := append([]T{}, all[from:min(from+int64(q.size), count)]...)
	if !q.paged {
		return c.JSON(http.StatusOK, items)
	}
	pages := (count + int64(q.size) - 1) / int64(q.size)
	return c.JSON(http.StatusOK, struct {
		envelope
		Items []T `json:"items"`
	}{envelope{Total: int64(total), Filtered: &count, ItemCount: len(items), Page: q.page, PageSize: q.size, PageCount: &pages}, items})
}
