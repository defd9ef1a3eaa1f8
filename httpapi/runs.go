package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// run is an attempt that a worker reported, as clients see it.
type run struct {
	At       float64  `json:"at"`
	JID      string   `json:"jid"`
	Class    string   `json:"class"`
	Queue    string   `json:"queue"`
	Status   string   `json:"status"`
	Duration *float64 `json:"duration_ms"` // null: the worker did not say
	Wait     *float64 `json:"wait_ms"`
	Attempt  int64    `json:"attempt"` // 0: the worker did not say
	Worker   string   `json:"worker,omitempty"`
	Error    string   `json:"error_class,omitempty"`
}

func newRun(r *metrics.Run) run {
	return run{At: wire.Seconds(r.At), JID: r.JID, Class: r.Class, Queue: r.Queue, Status: r.Status, Duration: millisIf(r.Duration), Wait: millisIf(r.Wait),
		Attempt: r.Attempt, Worker: r.Worker, Error: r.Error}
}

func millisIf(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}

// pastRuns are runs, and how long they are kept.
type pastRuns struct {
	past[run]
	MaxAge float64 `json:"max_age_seconds,omitempty"`
}

// listRuns lists what workers reported, the newest report first.
func (s *Server) listRuns(c echo.Context) error {
	q, err := parseRuns(c.Request(), s.cfg.Now())
	if err != nil {
		return err
	}
	q.Most = int(s.maxSearched)
	found, err := s.runs(q)
	if err != nil {
		return err
	}
	shown := pastRuns{past[run]{Items: make([]run, len(found.Runs)), Searched: found.Searched, Older: found.Older}, s.cfg.RunAge.Seconds()}
	for i := range found.Runs {
		shown.Items[i] = newRun(&found.Runs[i])
	}
	if found.Next != nil {
		next := fmt.Sprintf("%d,%d", found.Next.Offset, found.Next.Index)
		shown.Next = &next
	}
	return c.JSON(http.StatusOK, shown)
}

func (s *Server) runs(q metrics.RunQuery) (metrics.RunsFound, error) {
	if s.cfg.Metrics == nil {
		return metrics.RunsFound{}, problem.Unavailable(errUnwired, "this server does not know what ran")
	}
	return s.cfg.Metrics.Runs(q)
}

func parseRuns(r *http.Request, now time.Time) (q metrics.RunQuery, err error) {
	p, err := problem.ParseParams(r, "queue", "class", "jid", "error", "worker", "status", "failed", "from", "to", "limit", "next")
	if err != nil {
		return q, err
	}
	if wire.IsFingerprint(p["error"]) {
		return q, problem.BadRequest("parameter error is a fingerprint, which stands for a class and message of errors: workers report no message, so name an error class")
	}
	q = metrics.RunQuery{Queue: p["queue"], Class: p["class"], JID: p["jid"], Error: p["error"], Worker: p["worker"]}
	if q.From, q.To, err = p.Period(now); err != nil {
		return q, err
	}
	limit, err := p.Number("limit", defaultSize, 1, maxSize)
	if err != nil {
		return q, err
	}
	q.Limit = int(limit)
	if q.Status, err = statusesOf(p); err != nil {
		return q, err
	}
	q.Behind, err = behindRun(p)
	return q, err
}

// statuses reads what runs are to have come to: one status, or whether they failed.
func statusesOf(p problem.Params) ([]string, error) {
	status, failed := p["status"], p["failed"]
	switch {
	case status != "" && failed != "":
		return nil, problem.BadRequest("parameter failed does not go with status")
	case status != "" && !slices.Contains(wire.MetricStatuses, status):
		return nil, problem.BadRequest("parameter status is %q: it must be %s", problem.Shorten(status), strings.Join(wire.MetricStatuses, ", "))
	case status != "":
		return []string{status}, nil
	case failed == "true":
		return []string{wire.MetricFailed, wire.MetricDead}, nil
	case failed == "false":
		return []string{wire.MetricSuccess, wire.MetricDiscarded, wire.MetricExpired}, nil
	case failed != "":
		return nil, problem.BadRequest("parameter failed is %q: it must be true or false", problem.Shorten(failed))
	}
	return nil, nil
}

// behindRun reads a cursor: where the last run stood that was seen.
func behindRun(p problem.Params) (*metrics.RunPlace, error) {
	text, given := p["next"]
	if !given {
		return nil, nil
	}
	offset, index, found := strings.Cut(text, ",")
	o, err1 := strconv.ParseUint(offset, 10, 62)
	i, err2 := strconv.ParseUint(index, 10, 16)
	if !found || err1 != nil || err2 != nil {
		return nil, problem.BadRequest("parameter next is %q: it must be what an answer gave as next", problem.Shorten(text))
	}
	return &metrics.RunPlace{Offset: int64(o), Index: int(i)}, nil
}
