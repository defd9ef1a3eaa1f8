package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// headerNext is where a bare array says how it continues.
const headerNext = "Millrace-Next"

// list returns a handler that lists the entries of a stream.
func (a *entriesAPI) list(stream string) handler {
	return func(in *problem.Request) error {
		q := readQuery(in, stream, a.now())
		if in.Err() != nil {
			return in.Err()
		}
		if q.filter.hide = a.hide.of(in); q.format != "" {
			return a.export(in, q)
		}
		var f *found
		var err error
		if q.sorting == (sorting{}) {
			f, err = a.finder.find(in.Request().Context(), q, q.paged)
		} else {
			f, err = a.finder.findSorted(in.Request(), q)
		}
		if err != nil {
			return err
		}
		failure, err := a.finder.failure(q, f)
		if err != nil {
			return err
		}
		if f.next.Set {
			in.Response().Header().Set(headerNext, cursorText(f.next))
		}
		in.Response().Header().Set("Content-Type", echo.MIMEApplicationJSON)
		a.writeList(in.Request().Context(), in.Response(), q, f, failure)
		return nil
	}
}

// writeList writes the array itself: encoding/json would not keep a record byte for byte.
func (a *entriesAPI) writeList(ctx context.Context, w io.Writer, q *query, f *found, failure *answer.Failure) {
	head, tail := []byte("["), "]\n"
	if q.paged {
		envelope, err := json.Marshal(newEnvelope(q, f, failure))
		if err != nil { // numbers and strings only
			panic(err)
		}
		head = append(bytes.TrimSuffix(envelope, []byte("}")), `,"items":[`...)
		tail = "]}\n"
	}
	out := bufio.NewWriterSize(w, 64<<10)
	defer func() { _ = out.Flush() }() // it fails only if the client has gone
	_, _ = out.Write(head)
	items := listItems{records: a.records, hide: q.filter.hide}
	for i, e := range f.entries {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(items.item(ctx, e))
	}
	_, _ = out.WriteString(tail)
}

func newEnvelope(q *query, f *found, failure *answer.Failure) *answer.Envelope {
	e := &answer.Envelope{Total: f.total, ItemCount: len(f.entries), Page: q.page, PageSize: q.size, AsOf: &f.asOf, Unread: f.unread, Failure: failure}
	if f.exact {
		setCount(e, f.count)
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
