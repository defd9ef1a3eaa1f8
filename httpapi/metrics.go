package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// metricsAPI answers what was counted of jobs, and keeps the marks of deploys.
type metricsAPI struct {
	metrics *metrics.Reader // nil: this server has no metrics
	answers *answerCache
	publish func(ctx context.Context, m wire.Message) error
	now     func() time.Time
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newSpread(s metrics.Spread) *answer.Spread {
	if s.Count == 0 {
		return nil
	}
	return &answer.Spread{Count: s.Count, P50: millis(s.P50), P95: millis(s.P95), P99: millis(s.P99), Buckets: s.Buckets}
}

func newSum(s metrics.Sum) answer.JobSum {
	return answer.JobSum{
		Counts: answer.Counts(s.Counts), Total: millis(s.Total), Max: millis(s.Max), Run: newSpread(s.Run), Wait: newSpread(s.Wait), Attempts: s.Attempts,
	}
}

func newNamed(all []metrics.Named) []answer.NamedSum {
	named := make([]answer.NamedSum, len(all))
	for i, n := range all {
		named[i] = answer.NamedSum{Name: n.Name, Other: n.Other, JobSum: newSum(n.Sum)}
	}
	return named
}

func newDeploys(all []metrics.Deploy) []answer.Deploy {
	deploys := make([]answer.Deploy, len(all))
	for i, d := range all {
		deploys[i] = answer.Deploy(d)
	}
	return deploys
}

func newJobMetrics(a metrics.Answer, deploys []metrics.Deploy) answer.JobMetrics {
	m := answer.JobMetrics{From: wire.Seconds(a.From), To: wire.Seconds(a.To), Step: a.Step.Seconds(), Older: a.Older, Total: newSum(a.All),
		Series: make([]answer.JobPoint, len(a.Points)), Classes: newNamed(a.Classes), Queues: newNamed(a.Queues), Failures: []answer.JobFailure{}, Deploys: newDeploys(deploys)}
	for _, b := range metrics.Bounds {
		m.Bounds = append(m.Bounds, millis(b))
	}
	for i, p := range a.Points {
		m.Series[i] = answer.JobPoint{At: wire.Seconds(p.At), JobSum: newSum(p.Sum)}
	}
	for _, f := range a.Failures {
		m.Failures = append(m.Failures, answer.JobFailure(f))
	}
	return m
}

// jobs answers about all classes, or the one in the path.
func (a *metricsAPI) jobs(in *problem.Request) (any, error) {
	q := a.query(in)
	if len(in.ParamNames()) > 0 {
		q.Class = in.PathParam("class")
	}
	return a.answers.share(in, func(context.Context) (any, error) {
		counted, err := a.metrics.Ask(q)
		if err != nil {
			return nil, rangeProblem(err)
		}
		deploys, err := a.metrics.Deploys(counted.From, counted.To)
		return newJobMetrics(counted, deploys), err
	})
}

// Bounds of a step, in seconds.
const (
	minStep = 60
	maxStep = 366 * 86400
)

// query returns which sums are asked for.
func (a *metricsAPI) query(in *problem.Request) (q metrics.Query) {
	in.Query("queue", "from", "to", "step")
	q.Queue = in.Text("queue")
	q.From, q.To = readRange(in, a.now())
	q.Step = time.Duration(in.Number("step", 0, minStep, maxStep)) * time.Second
	a.require(in)
	return q
}

// require refuses a request of a server without metrics.
func (a *metricsAPI) require(in *problem.Request) {
	if a.metrics == nil {
		in.Fail(problem.Unavailable(errUnwired, "this server has no metrics"))
	}
}

// readRange reads from and to; the last hour, if they are not given.
func readRange(in *problem.Request, now time.Time) (from, to time.Time) {
	if from, to = in.Period(now); to.IsZero() {
		to = now
	}
	if from.IsZero() {
		from = to.Add(-time.Hour)
	}
	return from, to
}

// rangeProblem returns a problem if a range of time is invalid.
func rangeProblem(err error) error {
	if errors.Is(err, metrics.ErrStep) || errors.Is(err, metrics.ErrRange) || errors.Is(err, metrics.ErrPoints) {
		return problem.BadRequest("%s", err)
	}
	return err
}

// throughput counts the jobs that ended in all queues, or in one.
func (a *metricsAPI) throughput(in *problem.Request) (any, error) {
	q := a.query(in)
	return a.answers.share(in, func(context.Context) (any, error) {
		t, err := a.metrics.Throughput(q)
		if err != nil {
			return nil, rangeProblem(err)
		}
		shown := answer.QueueThroughput{From: wire.Seconds(t.From), To: wire.Seconds(t.To), Step: t.Step.Seconds(), Older: t.Older}
		shown.Queues = make([]answer.QueueCounts, len(t.Queues))
		for i, counted := range t.Queues {
			shown.Queues[i] = answer.QueueCounts(counted)
		}
		return shown, nil
	})
}

// deploys lists the deploys of a range of time, the newest first; of a year, if from is not given.
func (a *metricsAPI) deploys(in *problem.Request) (any, error) {
	in.Query("from", "to")
	from, to := readRange(in, a.now().Add(time.Second))
	if in.Text("from") == "" {
		from = to.AddDate(-1, 0, 0)
	}
	if a.require(in); in.Err() != nil {
		return nil, in.Err()
	}
	found, err := a.metrics.Deploys(from, to)
	return newDeploys(found), err
}

// maxLabel is the most characters of a deploy's label.
const maxLabel = 200

// addDeploy marks a deploy in all charts.
func (a *metricsAPI) addDeploy(in *problem.Request) error {
	in.Query()
	var body struct {
		Label string   `json:"label"`
		At    *float64 `json:"at"`
	}
	in.Body(&body)
	if n := utf8.RuneCountInString(body.Label); n == 0 || n > maxLabel {
		in.BadRequest("label must have 1 to %d characters", maxLabel)
	}
	now := a.now()
	seconds := wire.Seconds(now)
	at := *cmp.Or(body.At, &seconds)
	if at < 0 || at > problem.Latest {
		in.BadRequest("at must be seconds since 1970")
	}
	if checkReason(in, ""); in.Err() != nil {
		return in.Err()
	}
	d := answer.Deploy{Label: body.Label, At: at, Actor: auth.PrincipalOf(in.Request()).Name}
	m, err := wire.Rollup{Type: wire.TypeDeploy, Label: d.Label, At: d.At, Actor: d.Actor}.Message(now)
	if err != nil {
		return err
	}
	if err := a.publish(in.Request().Context(), m); err != nil {
		return problem.Unavailable(err, "the broker did not take it: nothing was done")
	}
	return in.JSON(http.StatusCreated, d)
}
