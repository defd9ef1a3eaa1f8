package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// change has the leader change an entry's time, queue, priority or arguments, and answers with the entry as it is from then on.
func (s *Server) change(stream string) echo.HandlerFunc {
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
		return s.askForEntry(c, wire.Command{Command: wire.CommandChange, Stream: stream, JID: jid, Offset: offset, Changes: body})
	}
}

// undo has the leader take back what was done to an entry last: delete, kill or change.
func (s *Server) undo(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		return s.askForEntry(c, wire.Command{Command: wire.CommandUndo, Stream: stream, JID: jid, Offset: offset, Reason: reason})
	}
}

// askForEntry sends a command and answers with the entry that came of it.
func (s *Server) askForEntry(c echo.Context, cmd wire.Command) error {
	cmd, err := sign(c, cmd)
	if err != nil {
		return err
	}
	reply, p := s.sendFor(c, cmd)
	if p != nil {
		return p
	}
	e := &tracker.Stored{Stream: cmd.Stream, JID: cmd.JID}
	if reply.Entry != nil { // else it was a repeat, answered from the journal
		e.Offset, e.First = *reply.Entry, *reply.Entry
	}
	ctx, hide := c.Request().Context(), s.hide.of(c)
	if found := s.entryRead(ctx, cmd.Stream, reply.Entry); found != nil {
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, s.wholeItem(ctx, hide, found))
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, withoutRecord(e, "it has fired already, or this sidecar has not read it yet"))
}

// entryRead waits until this sidecar has read an entry that the leader has; nil if that takes too long, or if it has fired since.
func (s *Server) entryRead(ctx context.Context, stream string, offset *int64) (found *tracker.Stored) {
	if offset == nil {
		return nil
	}
	s.readBack(ctx, readBackWithin, func() bool {
		var err error
		if found, err = s.cfg.Entries.Get(stream, *offset); err != nil || found != nil {
			return true
		}
		read, err := s.cfg.Entries.Position(stream)
		return err != nil || read >= *offset
	})
	return found
}
