package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/labstack/echo/v4"
)

// headerNext is where a bare array says how it goes on.
const headerNext = "Millrace-Next"

// list shows the entries of a stream.
func (s *Server) list(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		q, err := parseQuery(c.Request(), stream, s.cfg.Now())
		if err != nil {
			return err
		}
		q.filter.hide = s.hide.of(c)
		if q.format != "" {
			return s.export(c, q)
		}
		var f *found
		if q.sorting == (sorting{}) {
			f, err = s.search(c.Request().Context(), q, q.paged)
		} else {
			f, err = s.sorted(c.Request(), q)
		}
		if err != nil {
			return err
		}
		if f.next.Set {
			c.Response().Header().Set(headerNext, cursorText(f.next))
		}
		c.Response().Header().Set("Content-Type", echo.MIMEApplicationJSON)
		s.writeList(c.Request().Context(), c.Response(), q, f)
		return nil
	}
}

// writeList writes the array by hand: a record that went through encoding/json would not come out byte for byte.
func (s *Server) writeList(ctx context.Context, w io.Writer, q *query, f *found) {
	head, tail := []byte("["), "]\n"
	if q.paged {
		head, tail = openEnvelope(newEnvelope(q, f)), "]}\n"
	}
	out := bufio.NewWriterSize(w, 64<<10)
	defer func() { _ = out.Flush() }() // whoever asked is gone: there is nobody to tell
	_, _ = out.Write(head)
	large := fetches{hide: q.filter.hide}
	for i, e := range f.entries {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(large.item(ctx, s, e))
	}
	_, _ = out.WriteString(tail)
}

// openEnvelope is an envelope up to its items.
func openEnvelope(envelope any) []byte {
	head, err := json.Marshal(envelope)
	if err != nil { // numbers and strings only
		panic(err)
	}
	return append(head[:len(head)-1], `,"items":[`...)
}

// envelope is what stands around a page, as the brokers have it, and more.
type envelope struct {
	Total     int64   `json:"total_count"`
	Filtered  *int64  `json:"filtered_count,omitempty"` // left out where it is not known
	AtLeast   *int64  `json:"filtered_count_at_least,omitempty"`
	Searched  *int64  `json:"searched,omitempty"`   // entries that were looked at for this page and its count
	Unread    int64   `json:"unsearched,omitempty"` // of them, those over 64 KiB, which match no filter that looks inside
	ItemCount int     `json:"item_count"`
	Page      int64   `json:"page"`
	PageSize  int     `json:"page_size"`
	PageCount *int64  `json:"page_count,omitempty"`
	AsOf      *int64  `json:"as_of,omitempty"`
	Next      *string `json:"next"` // null: there is no more
}

func newEnvelope(q *query, f *found) *envelope {
	e := &envelope{Total: f.total, ItemCount: len(f.entries), Page: q.page, PageSize: q.size, AsOf: &f.asOf, Unread: f.unread}
	if f.exact {
		pages := (f.count + int64(q.size) - 1) / int64(q.size)
		e.Filtered, e.PageCount = &f.count, &pages
	}
	if !q.filter.unset() {
		e.Searched = &f.looked
	}
	if !q.filter.countable() {
		e.AtLeast = &f.count
	}
	if f.next.Set {
		next := cursorText(f.next)
		e.Next = &next
	}
	return e
}
