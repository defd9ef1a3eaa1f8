package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// entriesAPI shows and changes pending entries.
type entriesAPI struct {
	entries *tracker.Entries
	finder  *finder
	records *records
	leader  *leader
	hide    redaction
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
func (a *entriesAPI) list(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		q, err := parseQuery(c.Request(), stream, a.now())
		if err != nil {
			return err
		}
		q.filter.hide = a.hide.of(c)
		if q.format != "" {
			return a.export(c, q)
		}
		var f *found
		if q.sorting == (sorting{}) {
			f, err = a.finder.find(c.Request().Context(), q, q.paged)
		} else {
			f, err = a.finder.findSorted(c.Request(), q)
		}
		if err != nil {
			return err
		}
		if f.next.Set {
			c.Response().Header().Set(headerNext, cursorText(f.next))
		}
		c.Response().Header().Set("Content-Type", echo.MIMEApplicationJSON)
		a.writeList(c.Request().Context(), c.Response(), q, f)
		return nil
	}
}

// writeList writes the array itself: encoding/json would not keep a record byte for byte.
func (a *entriesAPI) writeList(ctx context.Context, w io.Writer, q *query, f *found) {
	head, tail := []byte("["), "]\n"
	if q.paged {
		head, tail = openEnvelope(newEnvelope(q, f)), "]}\n"
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

// openEnvelope returns an envelope up to its items.
func openEnvelope(envelope any) []byte {
	head, err := json.Marshal(envelope)
	if err != nil { // numbers and strings only
		panic(err)
	}
	return append(head[:len(head)-1], `,"items":[`...)
}

func newEnvelope(q *query, f *found) *envelope {
	e := &envelope{Total: f.total, ItemCount: len(f.entries), Page: q.page, PageSize: q.size, AsOf: &f.asOf, Unread: f.unread}
	if f.exact {
		e.setCount(f.count)
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
func (a *entriesAPI) show(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		e, err := a.pick(stream, jid, offset)
		if err != nil {
			return err
		}
		raw, err := a.records.of(c.Request().Context(), e)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, item(a.hide.of(c), e, raw))
	}
}

// entryOf returns which entry a request is about.
func entryOf(c echo.Context) (jid string, offset *int64, err error) {
	if jid, err = problem.PathParam(c, "jid"); err != nil {
		return "", nil, err
	}
	p, err := problem.ParseParams(c.Request(), "offset")
	if err != nil {
		return "", nil, err
	}
	if text, given := p["offset"]; given {
		o, err := problem.ParseOffset(text)
		return jid, &o, err
	}
	return jid, nil, nil
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
	happened, err := a.entries.Happened(stream, jid)
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
	var b strings.Builder
	fmt.Fprintf(&b, "the one at offset %d was %s", h.Offset, h.What)
	if h.Actor != "" {
		fmt.Fprintf(&b, " by %s", h.Actor)
	}
	if h.At != 0 {
		fmt.Fprintf(&b, " at %s", time.UnixMicro(int64(h.At*1e6)).UTC().Format(time.RFC3339))
	}
	return b.String()
}

// command returns a handler that makes the leader do something to an entry.
func (a *entriesAPI) command(verb, stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		return a.leader.do(c, wire.Command{Command: verb, Stream: stream, JID: jid, Offset: offset, Reason: reason})
	}
}

// change returns a handler that makes the leader change an entry's time, queue, priority or
// arguments. It answers with the changed entry.
func (a *entriesAPI) change(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		if _, err := wire.ParseChanges(stream, body); err != nil {
			return problem.BadRequest("%s", err)
		}
		return a.replace(c, wire.Command{Command: wire.CommandChange, Stream: stream, JID: jid, Offset: offset, Changes: body})
	}
}

// undo returns a handler that makes the leader take back what was last done to an entry: delete,
// kill or change.
func (a *entriesAPI) undo(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		return a.replace(c, wire.Command{Command: wire.CommandUndo, Stream: stream, JID: jid, Offset: offset, Reason: reason})
	}
}

// replace sends a command, and answers with the entry that it made.
func (a *entriesAPI) replace(c echo.Context, cmd wire.Command) error {
	cmd, err := sign(c, cmd)
	if err != nil {
		return err
	}
	reply, p := a.leader.send(c, cmd)
	if p != nil {
		return p
	}
	e := &tracker.Stored{Stream: cmd.Stream, JID: cmd.JID}
	if reply.Entry != nil { // else it was a repeat, answered from the journal
		e.Offset, e.First = *reply.Entry, *reply.Entry
	}
	ctx := c.Request().Context()
	if found := a.await(ctx, cmd.Stream, reply.Entry); found != nil {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, a.records.item(ctx, a.hide.of(c), found))
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, withoutRecord(e, "it has fired already, or this sidecar has not read it yet"))
}

// await waits until this sidecar has read an entry of the leader. It returns nil if that takes too
// long, or if the entry has fired since.
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

// release fires the entries that are held since the journal lost records, or deletes those of them
// that are due.
func (a *entriesAPI) release(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	var body struct {
		Discard bool   `json:"discard"`
		Reason  string `json:"reason"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	cmd := wire.Command{Command: wire.CommandRelease, Reason: body.Reason}
	if body.Discard {
		cmd.Command = wire.CommandDiscard
	}
	return a.leader.do(c, cmd)
}
