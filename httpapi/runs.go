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

// runsAPI lists what workers reported of single attempts.
type runsAPI struct {
	metrics *metrics.Metrics // nil: this server does not know what ran
	limits  *limits
	maxAge  time.Duration // for which reports are kept
	now     func() time.Time
}

// run is an attempt that a worker reported, as clients see it.
type run struct {
	At       float64  `json:"at"`
	JID      string   `json:"jid"`
	Class    string   `json:"class"`
	Queue    string   `json:"queue"`
	Status   string   `json:"status"`
	Duration *float64 `json:"duration_ms"` // null: not reported
	Wait     *float64 `json:"wait_ms"`
	Attempt  int64    `json:"attempt"` // 0: not reported
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

// past is a list of what was, the newest first, as far back as it is kept.
type past[T any] struct {
	Items    []T     `json:"items"`
	Searched int     `json:"searched"`
	Next     *string `json:"next"` // null: there is no more
	Older    bool    `json:"older_than_kept"`
}

// pastRuns are runs, and how long they are kept.
type pastRuns struct {
	past[run]
	MaxAge float64 `json:"max_age_seconds,omitempty"`
}

// list lists runs, the newest report first.
func (a *runsAPI) list(c echo.Context) error {
	q, err := parseRuns(c.Request(), a.now())
	if err != nil {
		return err
	}
	found, err := a.find(q)
	if err != nil {
		return err
	}
	shown := pastRuns{past[run]{Items: make([]run, len(found.Runs)), Searched: found.Searched, Older: found.Older}, a.maxAge.Seconds()}
	for i := range found.Runs {
		shown.Items[i] = newRun(&found.Runs[i])
	}
	if found.Next != nil {
		next := fmt.Sprintf("%d,%d", found.Next.Offset, found.Next.Index)
		shown.Next = &next
	}
	return c.JSON(http.StatusOK, shown)
}

func (a *runsAPI) find(q metrics.RunQuery) (metrics.RunsFound, error) {
	if a.metrics == nil {
		return metrics.RunsFound{}, problem.Unavailable(errUnwired, "this server does not know what ran")
	}
	q.Most = int(a.limits.searched)
	return a.metrics.Runs(q)
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
	if q.Status, err = parseStatuses(p); err != nil {
		return q, err
	}
	q.Behind, err = parseRunCursor(p)
	return q, err
}

// parseStatuses reads the outcome of runs: one status, or whether they failed.
func parseStatuses(p problem.Params) ([]string, error) {
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

// parseRunCursor reads next: the place of the last run that was seen.
func parseRunCursor(p problem.Params) (*metrics.RunPlace, error) {
	text, given := p["next"]
	if !given {
		return nil, nil
	}
	offset, index, found := strings.Cut(text, ",")
	o, err1 := strconv.ParseUint(offset, 10, 62)
	i, err2 := strconv.ParseUint(index, 10, 16)
	if !found || err1 != nil || err2 != nil {
		return nil, badCursor(text)
	}
	return &metrics.RunPlace{Offset: int64(o), Index: int(i)}, nil
}
