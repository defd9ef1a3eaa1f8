package httpapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// runsAPI lists what workers reported of single attempts.
type runsAPI struct {
	metrics *metrics.Reader // nil: this server does not know what ran
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

func (a *runsAPI) list(in *problem.Request) (any, error) {
	q := readRuns(in, a.now())
	if in.Err() != nil {
		return nil, in.Err()
	}
	found, err := a.find(q)
	shown := pastRuns{past[run]{Items: make([]run, len(found.Runs)), Searched: found.Searched, Older: found.Older}, a.maxAge.Seconds()}
	for i := range found.Runs {
		shown.Items[i] = newRun(&found.Runs[i])
	}
	if found.Next != nil {
		next := fmt.Sprintf("%d,%d", found.Next.Offset, found.Next.Index)
		shown.Next = &next
	}
	return shown, err
}

func (a *runsAPI) find(q metrics.RunQuery) (metrics.RunsFound, error) {
	if a.metrics == nil {
		return metrics.RunsFound{}, problem.Unavailable(errUnwired, "this server does not know what ran")
	}
	q.Most = int(a.limits.searched)
	return a.metrics.Runs(q)
}

func readRuns(in *problem.Request, now time.Time) metrics.RunQuery {
	q := metrics.RunQuery{Queue: in.Text("queue"), Class: in.Text("class"), JID: in.Text("jid"), Error: in.Text("error"), Worker: in.Text("worker")}
	if wire.IsFingerprint(q.Error) {
		in.BadRequest("parameter error is a fingerprint, which stands for a class and message of errors: workers report no message, so name an error class")
	}
	q.From, q.To = in.Period(now)
	q.Limit = int(in.Number("limit", defaultSize, 1, maxSize))
	q.Status = readStatuses(in)
	q.Behind = readRunCursor(in)
	return q
}

// readStatuses reads the outcome of runs: one status, or whether they failed.
func readStatuses(in *problem.Request) []string {
	status, failed := in.Text("status"), in.Text("failed")
	switch {
	case status != "" && failed != "":
		in.BadRequest("parameter failed does not go with status")
	case status != "" && !slices.Contains(wire.MetricStatuses, status):
		in.BadRequest("parameter status is %q: it must be %s or running", problem.Shorten(status), strings.Join(wire.MetricStatuses, ", "))
	case status != "":
		return []string{status}
	case failed == "true":
		return []string{wire.MetricFailed, wire.MetricDead}
	case failed == "false":
		return []string{wire.MetricSuccess, wire.MetricDiscarded, wire.MetricExpired}
	case failed != "":
		in.BadRequest("parameter failed is %q: it must be true or false", problem.Shorten(failed))
	}
	return nil
}

// readRunCursor reads next: the place of the last run that was seen.
func readRunCursor(in *problem.Request) *metrics.RunPlace {
	text := in.Text("next")
	if text == "" {
		return nil
	}
	offset, index, found := strings.Cut(text, ",")
	o, err1 := strconv.ParseUint(offset, 10, 62)
	i, err2 := strconv.ParseUint(index, 10, 16)
	if !found || err1 != nil || err2 != nil {
		badCursor(in)
	}
	return &metrics.RunPlace{Offset: int64(o), Index: int(i)}
}
