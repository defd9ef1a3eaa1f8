package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

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
