package httpapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
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

func newRun(r *metrics.Run) answer.Run {
	return answer.Run{At: wire.Seconds(r.At), JID: r.JID, Class: r.Class, Queue: r.Queue, Status: r.Status, Duration: millisIf(r.Duration), Wait: millisIf(r.Wait),
		Attempt: r.Attempt, Worker: r.Worker, Error: r.Error}
}

func millisIf(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}

func (a *runsAPI) list(in *problem.Request) (any, error) {
	q := readRuns(in, a.now())
	if in.Err() != nil {
		return nil, in.Err()
	}
	found, err := a.find(q)
	shown := answer.Runs{
		History: answer.History[answer.Run]{Items: make([]answer.Run, len(found.Runs)), Searched: found.Searched, Older: found.Older},
		MaxAge:  a.maxAge.Seconds(),
	}
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
