package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// entriesAPI shows and changes pending entries.
type entriesAPI struct {
	entries *tracker.Reader
	finder  *finder
	records *records
	leader  *leader
	hide    *redactor
	now     func() time.Time
}

// entrySets are the sets of pending entries, as paths name them.
var entrySets = []struct{ path, stream string }{
	{"scheduled-jobs", wire.ScheduledJobs}, {"retries", wire.Retries}, {"dead-jobs", wire.DeadJobs}, {"gated-jobs", wire.Gated},
}

// setOf returns the set of a stream; empty for other streams.
func setOf(stream string) string {
	for _, set := range entrySets {
		if set.stream == stream {
			return set.path
		}
	}
	return ""
}

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

// show returns a handler that shows one entry of a stream.
func (a *entriesAPI) show(stream string) handler {
	return func(in *problem.Request) error {
		jid, offset := readEntry(in)
		if in.Err() != nil {
			return in.Err()
		}
		e, err := a.pick(stream, jid, offset)
		if err != nil {
			return err
		}
		raw, err := a.records.of(in.Request().Context(), e)
		if err != nil {
			return err
		}
		return in.Blob(http.StatusOK, echo.MIMEApplicationJSON, item(a.hide.of(in), e, raw))
	}
}

func readEntry(in *problem.Request) (jid string, offset *int64) {
	jid = in.PathParam("jid")
	in.Query("offset")
	if text := in.Text("offset"); text != "" {
		o := in.Offset(text)
		return jid, &o
	}
	return jid, nil
}

// pick returns the only entry with a jid, or the one at an offset.
func (a *entriesAPI) pick(stream, jid string, offset *int64) (*tracker.Stored, error) {
	all, err := a.entries.Find(stream, jid)
	if err != nil {
		return nil, err
	}
	if offset != nil {
		for _, e := range all {
			if e.Offset == *offset {
				return e, nil
			}
		}
		all = nil
	}
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return nil, a.notFound(stream, jid)
	}
	p := problem.New(http.StatusConflict, "%d entries have this jid: pick one with ?offset=", len(all))
	for _, e := range all {
		p.Offsets = append(p.Offsets, e.Offset)
	}
	return nil, p
}

// notFound says that no entry has a jid, and what became of the last that had it.
func (a *entriesAPI) notFound(stream, jid string) error {
	happened, err := a.entries.LastOutcome(stream, jid)
	if err != nil {
		return err
	}
	p := problem.New(http.StatusNotFound, "no entry of %s has this jid now", stream)
	if p.Happened = happened; happened != nil {
		p.Reason += ": " + describe(happened)
	}
	return p
}

// describe says what became of an entry, in words.
func describe(h *wire.Happened) string {
	text := fmt.Sprintf("the one at offset %d was %s", h.Offset, h.What)
	if h.Actor != "" {
		text += " by " + h.Actor
	}
	if h.At != 0 {
		text += " at " + time.UnixMicro(int64(h.At*1e6)).UTC().Format(time.RFC3339)
	}
	return text
}

// command returns a handler that makes the leader do something to an entry.
func (a *entriesAPI) command(verb, stream string) handler {
	return func(in *problem.Request) error {
		jid, offset := readEntry(in)
		return a.leader.do(in, wire.Command{Command: verb, Stream: stream, JID: jid, Offset: offset, Reason: readReason(in)})
	}
}

// change returns a handler that makes the leader change an entry, and answers with the new one.
func (a *entriesAPI) change(stream string) handler {
	return func(in *problem.Request) error {
		jid, offset := readEntry(in)
		body := in.Raw()
		if _, err := wire.ParseChanges(stream, body); err != nil {
			in.BadRequest("%s", err)
		}
		return a.replace(in, wire.Command{Command: wire.CommandChange, Stream: stream, JID: jid, Offset: offset, Changes: body})
	}
}

// undo returns a handler that makes the leader take back what was last done to an entry.
func (a *entriesAPI) undo(stream string) handler {
	return func(in *problem.Request) error {
		jid, offset := readEntry(in)
		return a.replace(in, wire.Command{Command: wire.CommandUndo, Stream: stream, JID: jid, Offset: offset, Reason: readReason(in)})
	}
}

// replace sends a command, and answers with the entry that it made.
func (a *entriesAPI) replace(in *problem.Request, cmd wire.Command) error {
	reply, p := a.leader.send(in, sign(in, cmd))
	if p != nil {
		return p
	}
	e := &tracker.Stored{Stream: cmd.Stream, JID: cmd.JID}
	if reply.Entry != nil { // else it was a repeat, answered from the journal
		e.Offset, e.First = *reply.Entry, *reply.Entry
	}
	ctx := in.Request().Context()
	if found := a.await(ctx, cmd.Stream, reply.Entry); found != nil {
		return in.Blob(http.StatusOK, echo.MIMEApplicationJSON, a.records.item(ctx, a.hide.of(in), found))
	}
	return in.Blob(http.StatusOK, echo.MIMEApplicationJSON, withoutRecord(e, "it was delivered already, or this sidecar has not read it yet"))
}

// await waits until this sidecar has read an entry; nil if it has fired, or that takes too long.
func (a *entriesAPI) await(ctx context.Context, stream string, offset *int64) (found *tracker.Stored) {
	if offset == nil {
		return nil
	}
	a.leader.readBack(ctx, readBackLimit, func() bool {
		var err error
		if found, err = a.entries.Get(stream, *offset); err != nil || found != nil {
			return true
		}
		read, err := a.entries.Position(stream)
		return err != nil || read >= *offset
	})
	return found
}

// release fires the entries that are held since the journal lost records, or discards due ones.
func (a *entriesAPI) release(in *problem.Request) error {
	in.Query()
	var body struct {
		Discard bool   `json:"discard"`
		Reason  string `json:"reason"`
	}
	in.Body(&body)
	cmd := wire.Command{Command: wire.CommandRelease, Reason: body.Reason}
	if body.Discard {
		cmd.Command = wire.CommandDiscard
	}
	return a.leader.do(in, cmd)
}
