package httpapi

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// What one list reads of records that stay in the stream; entries beyond it are shown without their record.
const (
	maxFetched      = 32 << 20 // bytes
	maxFetchTime    = 5 * time.Second
	fetchTimeout    = 5 * time.Second
	reasonForgotten = "the stream does not have the record any more"
)

// item is an entry as clients see it: the record byte for byte, but for what is hidden from them, with one member more.
func item(h *redactor, s *tracker.Stored, raw []byte) []byte {
	raw, hid := h.record(raw)
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

// withoutRecord is an entry whose record could not be had, with the reason.
func withoutRecord(s *tracker.Stored, reason string) []byte {
	return annotate(item(nil, s, fmt.Appendf(nil, `{"jid":%s}`, quote(s.JID))), "omitted", reason)
}

// annotate adds a text to the member millrace, with which an item ends.
func annotate(item []byte, name, text string) []byte {
	return fmt.Appendf(item[:len(item)-len("}}")], `,%s:%s}}`, quote(name), quote(text))
}

// record gives an entry's bytes, from the stream where the view does not keep them.
func (s *Server) record(ctx context.Context, e *tracker.Stored) ([]byte, error) {
	if e.Raw != nil {
		return e.Raw, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := s.cfg.Fetch(ctx, e.Stream, e.Offset)
	if err != nil {
		return nil, problem.Unavailable(err, "the record is over 64 KiB and stays in the stream, which cannot be read now")
	}
	found, err := wire.EntryOf(&r)
	if err != nil || r.Stream != e.Stream || r.Offset != e.Offset || found.JID != e.JID {
		return nil, problem.Unavailable(err, reasonForgotten)
	}
	return found.Raw, nil
}

// wholeItem is an entry with its record, whatever that costs, if it can be had.
func (s *Server) wholeItem(ctx context.Context, h *redactor, e *tracker.Stored) []byte {
	raw, err := s.record(ctx, e)
	if err != nil {
		return withoutRecord(e, problem.From(err).Reason)
	}
	return item(h, e, raw)
}

// fetches bounds what a list reads of records that stay in the stream.
type fetches struct {
	hide  *redactor
	bytes int
	until time.Time
}

// item is an entry for a list: with its record if that can be had at a bearable price.
func (f *fetches) item(ctx context.Context, s *Server, e *tracker.Stored) []byte {
	if e.Raw != nil {
		return item(f.hide, e, e.Raw)
	}
	if f.until.IsZero() {
		f.until = time.Now().Add(s.maxFetchTime)
	}
	if f.bytes >= maxFetched || time.Now().After(f.until) {
		return withoutRecord(e, "the record is over 64 KiB, and this list has read enough of that size: ask for the jid")
	}
	out := s.wholeItem(ctx, f.hide, e)
	f.bytes += len(out)
	return out
}
