package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// timeline is what is known of a job.
type timeline struct {
	JID       string            `json:"jid"`
	Entries   []json.RawMessage `json:"entries"` // pending now
	Events    []jobEvent        `json:"events"`  // the last that became of the entries with this jid in each set, the newest first
	Leases    []heldLease       `json:"leases,omitempty"`
	Runs      []run             `json:"runs,omitempty"` // what workers reported of it, the newest first
	OlderThan bool              `json:"older_than_kept"`
}

// heldLease is a lease of a job, as its timeline shows it.
type heldLease struct {
	ID      string  `json:"id"`
	Until   float64 `json:"until"`
	Queue   string  `json:"queue"`
	Class   string  `json:"class"`
	Attempt int     `json:"attempt"`
}

type jobEvent struct {
	At     float64 `json:"at"`
	What   string  `json:"what"`
	Set    string  `json:"set"`
	Offset int64   `json:"offset"`
	Actor  string  `json:"actor,omitempty"`
}

// showJob tells where a job is, and what became of it.
func (s *Server) showJob(c echo.Context) error {
	jid, err := pathParam(c, "jid")
	if err != nil {
		return err
	}
	if _, err := parseParams(c.Request()); err != nil {
		return err
	}
	t := timeline{JID: jid, Entries: []json.RawMessage{}, Events: []jobEvent{}, OlderThan: true}
	large := fetches{hide: s.hiderFor(whoSent(c.Request()))}
	for _, set := range entrySets {
		all, err := s.cfg.Entries.Find(set.stream, jid)
		if err != nil {
			return err
		}
		for _, e := range all {
			t.Entries = append(t.Entries, inSet(large.item(c.Request().Context(), s, e), set.path))
		}
		h, err := s.cfg.Entries.Happened(set.stream, jid)
		if err != nil {
			return err
		}
		if h != nil {
			t.Events = append(t.Events, jobEvent{h.At, h.What, set.path, h.Offset, h.Actor})
		}
	}
	held, err := s.cfg.Entries.Leases(jid)
	if err != nil {
		return err
	}
	for _, e := range held {
		t.Leases = append(t.Leases, heldLease{e.JID, wire.Seconds(e.At), e.Queue, e.Class, e.Attempt + 1})
	}
	if t.Runs, err = s.runsOf(jid); err != nil {
		return err
	}
	slices.SortStableFunc(t.Events, func(a, b jobEvent) int { return cmp.Compare(b.At, a.At) })
	if len(t.Entries)+len(t.Events)+len(t.Leases)+len(t.Runs) == 0 {
		return newProblem(http.StatusNotFound, "nothing is known of a job with this jid: it may wait in its queue, have run, or be older than what is kept")
	}
	return writeJSON(c, http.StatusOK, t)
}

// inSet says in an item in which set it is.
func inSet(item []byte, set string) []byte { return annotate(item, "set", set) }

// writeJSON writes an answer with records in it, whose bytes must not change: encoding/json escapes what HTML would not like.
func writeJSON(c echo.Context, status int, v any) error {
	c.Response().Header().Set(echo.HeaderContentType, jsonType)
	c.Response().WriteHeader(status)
	e := json.NewEncoder(c.Response())
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// deleteJob forgets a job that is not in its queue yet, in whichever set it waits.
func (s *Server) deleteJob(c echo.Context) error {
	jid, err := pathParam(c, "jid")
	if err != nil {
		return err
	}
	if _, err := parseParams(c.Request()); err != nil {
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
	return newProblem(http.StatusConflict, "%d entries have this jid: delete one of them in its set, with ?offset=", len(found))
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
		return newProblem(http.StatusConflict, "the job is leased: somebody works on it")
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
		return newProblem(http.StatusNotFound, "no entry has this jid now")
	}
	status, reason := http.StatusNotFound, "no entry has this jid now: "
	if reachedQueue[last.What] {
		status, reason = http.StatusConflict, "the job is in its queue already, or has run: "
	}
	p := newProblem(status, "%s%s", reason, story(last))
	p.Happened = last
	return p
}

// reachedQueue are the deeds after which a job is in its queue.
var reachedQueue = map[string]bool{
	wire.OpFired: true, wire.OpTriggered: true, wire.OpRetried: true, wire.OpEnqueued: true, wire.OpRefired: true,
}
