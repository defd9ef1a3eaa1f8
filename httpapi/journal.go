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

// act is what the journal says was done, as clients see it.
type act struct {
	Record    int64   `json:"record"` // the journal's, by its offset
	At        float64 `json:"at"`
	Op        string  `json:"op"`
	Set       string  `json:"set,omitempty"`
	Stream    string  `json:"stream,omitempty"` // where it is about no set
	Offset    *int64  `json:"offset,omitempty"`
	JID       string  `json:"jid,omitempty"`
	Queue     string  `json:"queue,omitempty"`
	To        string  `json:"to,omitempty"`
	Identity  string  `json:"identity,omitempty"`
	Actor     string  `json:"actor,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Operation string  `json:"operation,omitempty"`
	Action    string  `json:"action,omitempty"`
	State     string  `json:"state,omitempty"`
	Count     int64   `json:"count,omitempty"`
}

func newAct(a *tracker.Act) act {
	shown := act{Record: a.Record, At: a.At, Op: a.Op, JID: a.JID, Queue: a.Queue, To: a.To, Identity: a.Identity, Actor: a.Actor, Reason: a.Reason,
		Operation: a.Operation, Action: a.Action, State: a.State, Count: a.Count}
	if shown.Set = setOf(a.Stream); shown.Set == "" {
		shown.Stream = a.Stream
	}
	if a.JID != "" && a.Op != wire.NotedCancelled || a.Op == wire.TypeDismissed {
		shown.Offset = &a.Offset
	}
	return shown
}

// setOf names the set of a stream; empty for other streams.
func setOf(stream string) string {
	for _, set := range entrySets {
		if set.stream == stream {
			return set.path
		}
	}
	return ""
}

// past is a list of what was, the newest first, as far back as it is kept.
type past[T any] struct {
	Items    []T     `json:"items"`
	Searched int     `json:"searched"`
	Next     *string `json:"next"` // null: there is no more
	Older    bool    `json:"older_than_kept"`
}

// showJournal tells what was done, by whom and why.
func (s *Server) showJournal(c echo.Context) error {
	q, err := parseJournal(c.Request(), s.cfg.Now())
	if err != nil {
		return err
	}
	if q.sifts() {
		return s.share(c, func(context.Context) (any, error) { return s.searchJournal(q) })
	}
	found, err := s.searchJournal(q)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, found)
}

func parseJournal(r *http.Request, now time.Time) (q journalQuery, err error) {
	p, err := problem.ParseParams(r, "from", "to", "actor", "jid", "op", "queue", "operation", "collapse", "limit", "next")
	if err != nil {
		return q, err
	}
	q = journalQuery{ActQuery: tracker.ActQuery{Actor: p["actor"], JID: p["jid"], Op: p["op"]}, queue: p["queue"], operation: p["operation"]}
	switch p["collapse"] {
	case "":
	case "operations":
		q.collapsed = true
		if err := p.Without("collapse, which leaves single jobs out", "jid", "operation"); err != nil {
			return q, err
		}
	default:
		return q, problem.BadRequest("parameter collapse is %q: it must be operations", problem.Shorten(p["collapse"]))
	}
	from, to, err := p.Period(now)
	if err != nil {
		return q, err
	}
	q.From, q.To = secondsOrZero(from), secondsOrZero(to)
	limit, err := p.Number("limit", defaultSize, 1, maxSize)
	if err != nil {
		return q, err
	}
	q.Limit = int(limit)
	q.Below, q.shown, err = journalNext(p)
	return q, err
}

// secondsOrZero is a time as seconds since 1970, 0 if it is not given.
func secondsOrZero(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return wire.Seconds(t)
}
