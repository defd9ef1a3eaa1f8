package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// show gives one entry.
func (s *Server) show(stream string) echo.HandlerFunc {
	return func(c echo.Context) error {
		jid, offset, err := entryOf(c)
		if err != nil {
			return err
		}
		e, err := s.pick(stream, jid, offset)
		if err != nil {
			return err
		}
		raw, err := s.record(c.Request().Context(), e)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, item(s.hide.of(c), e, raw))
	}
}

// entryOf reads which entry a request is about.
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

// pick finds the only entry with a jid, or the one at an offset.
func (s *Server) pick(stream, jid string, offset *int64) (*tracker.Stored, error) {
	all, err := s.cfg.Entries.Find(stream, jid)
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
		return nil, s.gone(stream, jid)
	}
	p := problem.New(http.StatusConflict, "%d entries have this jid: pick one with ?offset=", len(all))
	for _, e := range all {
		p.Offsets = append(p.Offsets, e.Offset)
	}
	return nil, p
}

// gone says that no entry has a jid, and what became of the last that had it.
func (s *Server) gone(stream, jid string) error {
	happened, err := s.cfg.Entries.Happened(stream, jid)
	if err != nil {
		return err
	}
	p := problem.New(http.StatusNotFound, "no entry of %s has this jid now", stream)
	if p.Happened = happened; happened != nil {
		p.Reason += ": " + story(happened)
	}
	return p
}

// story tells what happened as a person would.
func story(h *wire.Happened) string {
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
