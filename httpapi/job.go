package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// inSet says in an item in which set it is.
func inSet(item []byte, set string) []byte { return annotate(item, "set", set) }

// writeJSON writes an answer with records in it, whose bytes must not change: encoding/json escapes what HTML would not like.
func writeJSON(c echo.Context, status int, v any) error {
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(status)
	e := json.NewEncoder(c.Response())
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// deleteJob forgets a job that is not in its queue yet, in whichever set it waits.
func (s *Server) deleteJob(c echo.Context) error {
	jid, err := problem.PathParam(c, "jid")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	found, err := s.waiting(jid)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		return s.notWaiting(jid)
	case 1:
		return s.ask(c, wire.Command{Command: wire.CommandDelete, Stream: found[0].Stream, JID: jid, Offset: &found[0].Offset, Reason: reason})
	}
	return problem.New(http.StatusConflict, "%d entries have this jid: delete one of them in its set, with ?offset=", len(found))
}

// waiting gives all pending entries with a jid.
func (s *Server) waiting(jid string) (all []*tracker.Stored, err error) {
	for _, set := range entrySets {
		found, err := s.cfg.Entries.Find(set.stream, jid)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// notWaiting says why a job cannot be deleted: it went to its queue, or was never seen.
func (s *Server) notWaiting(jid string) error {
	held, err := s.cfg.Entries.Leases(jid)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return problem.New(http.StatusConflict, "the job is leased: a worker holds it over HTTP")
	}
	var last *wire.Happened
	for _, set := range entrySets {
		h, err := s.cfg.Entries.Happened(set.stream, jid)
		if err != nil {
			return err
		}
		if h != nil && (last == nil || h.At > last.At) {
			last = h
		}
	}
	if last == nil {
		return problem.New(http.StatusNotFound, "no entry has this jid now")
	}
	status, reason := http.StatusNotFound, "no entry has this jid now: "
	if reachedQueue[last.What] {
		status, reason = http.StatusConflict, "the job is in its queue already, or has run: "
	}
	p := problem.New(status, "%s%s", reason, story(last))
	p.Happened = last
	return p
}

// reachedQueue are the deeds after which a job is in its queue.
var reachedQueue = map[string]bool{
	wire.OpFired: true, wire.OpTriggered: true, wire.OpRetried: true, wire.OpEnqueued: true, wire.OpRefired: true,
}
