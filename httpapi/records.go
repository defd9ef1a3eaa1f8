package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// What one list reads of records that stay in the stream. Entries beyond it have no record.
const (
	maxFetched   = 32 << 20 // bytes
	maxFetchTime = 5 * time.Second
	fetchTimeout = 5 * time.Second
)

// records reads the records of entries: from the stream, where the view does not keep them.
type records struct {
	fetch  func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	limits *limits
}

func (r *records) of(ctx context.Context, e *tracker.Stored) ([]byte, error) {
	if e.Raw != nil {
		return e.Raw, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	record, err := r.fetch(ctx, e.Stream, e.Offset)
	if err != nil {
		return nil, problem.Unavailable(err, "the record is over 64 KiB and stays in the stream, which cannot be read now")
	}
	found, err := wire.EntryOf(&record)
	if err != nil || record.Stream != e.Stream || record.Offset != e.Offset || found.JID != e.JID {
		return nil, problem.Unavailable(err, "the stream does not have the record any more")
	}
	return found.Raw, nil
}

// item returns an entry with its record if it can be read, at any cost.
func (r *records) item(ctx context.Context, hide *redactor, e *tracker.Stored) []byte {
	raw, err := r.of(ctx, e)
	if err != nil {
		return withoutRecord(e, problem.From(err).Reason)
	}
	return item(hide, e, raw)
}

// listItems returns the items of one list, and bounds what it reads of large records.
type listItems struct {
	records *records
	hide    *redactor
	bytes   int
	until   time.Time
}

func (l *listItems) item(ctx context.Context, e *tracker.Stored) []byte {
	if e.Raw != nil {
		return item(l.hide, e, e.Raw)
	}
	if l.until.IsZero() {
		l.until = time.Now().Add(l.records.limits.fetch)
	}
	if l.bytes >= maxFetched || time.Now().After(l.until) {
		return withoutRecord(e, "the record is over 64 KiB, and this list has read enough of that size: ask for the jid")
	}
	out := l.records.item(ctx, l.hide, e)
	l.bytes += len(out)
	return out
}

// item returns an entry as clients see it: the record byte for byte, with one more member.
func item(hide *redactor, s *tracker.Stored, raw []byte) []byte {
	raw, hid := hide.record(raw)
	e := wire.Entry{
		Stream: s.Stream, Offset: s.Offset, JID: s.JID, At: s.At, Attempt: s.Attempt,
		Job: wire.Job{Queue: s.Queue, Class: s.Class}, Raw: raw,
	}
	out := e.Item(s.First)
	if s.Parked != "" {
		out = annotate(out, "refused", s.Parked)
	}
	if hid {
		out = fmt.Appendf(out[:len(out)-len("}}")], `,"redacted":true}}`)
	}
	return out
}

// withoutRecord returns an entry whose record cannot be read, with the reason.
func withoutRecord(s *tracker.Stored, reason string) []byte {
	return annotate(item(nil, s, fmt.Appendf(nil, `{"jid":%s}`, quote(s.JID))), "omitted", reason)
}

// annotate adds a text to the member millrace, with which an item ends.
func annotate(item []byte, name, text string) []byte {
	return fmt.Appendf(item[:len(item)-len("}}")], `,%s:%s}}`, quote(name), quote(text))
}

func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a string can always be encoded
		panic(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// writeJSON answers with records in it: encoding/json would escape some of their characters.
func writeJSON(in *problem.Request, v any) error {
	in.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	in.Response().WriteHeader(http.StatusOK)
	e := json.NewEncoder(in.Response())
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
