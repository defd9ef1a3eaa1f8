package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/wire"
)

// metricsAPI answers what was counted of jobs, and keeps the marks of deploys.
type metricsAPI struct {
	metrics *metrics.Metrics // nil: this server has no metrics
	answers *answerCache
	publish func(ctx context.Context, m wire.Message) error
	now     func() time.Time
}

// spread is the distribution of spans of time, in milliseconds.
type spread struct {
	Count   int64   `json:"count"`
	P50     float64 `json:"p50_ms"`
	P95     float64 `json:"p95_ms"`
	P99     float64 `json:"p99_ms"`
	Buckets []int64 `json:"buckets"` // how many are within each of bounds_ms, and above the last
}

// jobSum is what ended in some span of time.
type jobSum struct {
	metrics.Counts
	Total float64 `json:"total_ms"`
	Max   float64 `json:"max_ms"`
	Run   *spread `json:"run"`  // null: not known
	Wait  *spread `json:"wait"` // null: not known

	Attempts []int64 `json:"attempts"` // jobs that ended at their first attempt, their second, …
}

type jobPoint struct {
	At float64 `json:"at"`
	jobSum
}

type namedSum struct {
	Name  string `json:"name"`
	Other bool   `json:"other,omitempty"` // all above the limit of names
	jobSum
}

type jobFailure struct {
	Class string `json:"class"`
	Error string `json:"error"`
	Count int64  `json:"count"`
}

// jobMetrics is the answer about a range of time.
type jobMetrics struct {
	From     float64          `json:"from"`
	To       float64          `json:"to"`
	Step     float64          `json:"step_seconds"`
	Older    bool             `json:"older_than_kept,omitempty"`
	Bounds   []float64        `json:"bounds_ms"`
	Total    jobSum           `json:"total"`
	Series   []jobPoint       `json:"series"`
	Classes  []namedSum       `json:"classes"`
	Queues   []namedSum       `json:"queues"`
	Failures []jobFailure     `json:"failures"`
	Deploys  []metrics.Deploy `json:"deploys"`
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func newSpread(s metrics.Spread) *spread {
	if s.Count == 0 {
		return nil
	}
	return &spread{s.Count, millis(s.P50), millis(s.P95), millis(s.P99), s.Buckets}
}

func newSum(s metrics.Sum) jobSum {
	return jobSum{s.Counts, millis(s.Total), millis(s.Max), newSpread(s.Run), newSpread(s.Wait), s.Attempts}
}

func newNamed(all []metrics.Named) []namedSum {
	named := make([]namedSum, len(all))
	for i, n := range all {
		named[i] = namedSum{n.Name, n.Other, newSum(n.Sum)}
	}
	return named
}

func newJobMetrics(a metrics.Answer, deploys []metrics.Deploy) jobMetrics {
	m := jobMetrics{From: wire.Seconds(a.From), To: wire.Seconds(a.To), Step: a.Step.Seconds(), Older: a.Older, Total: newSum(a.All),
		Series: make([]jobPoint, len(a.Points)), Classes: newNamed(a.Classes), Queues: newNamed(a.Queues), Failures: []jobFailure{}, Deploys: deploys}
	for _, b := range metrics.Bounds {
		m.Bounds = append(m.Bounds, millis(b))
	}
	for i, p := range a.Points {
		m.Series[i] = jobPoint{wire.Seconds(p.At), newSum(p.Sum)}
	}
	for _, f := range a.Failures {
		m.Failures = append(m.Failures, jobFailure(f))
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
		answer, err := a.metrics.Ask(q)
		if err != nil {
			return nil, rangeProblem(err)
		}
		deploys, err := a.metrics.Deploys(answer.From, answer.To)
		return newJobMetrics(answer, deploys), err
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

// queueThroughput is how many jobs ended in each queue, step by step.
type queueThroughput struct {
	From   float64       `json:"from"`
	To     float64       `json:"to"`
	Step   float64       `json:"step_seconds"`
	Older  bool          `json:"older_than_kept,omitempty"`
	Queues []queueCounts `json:"queues"`
}

type queueCounts struct {
	Name   string  `json:"name"`
	Other  bool    `json:"other,omitempty"` // all above the limit of names
	Counts []int64 `json:"counts"`          // of each step, the first beginning at from
}

// throughput counts the jobs that ended in all queues, or in one.
func (a *metricsAPI) throughput(in *problem.Request) (any, error) {
	q := a.query(in)
	return a.answers.share(in, func(context.Context) (any, error) {
		t, err := a.metrics.Throughput(q)
		if err != nil {
			return nil, rangeProblem(err)
		}
		shown := queueThroughput{wire.Seconds(t.From), wire.Seconds(t.To), t.Step.Seconds(), t.Older, make([]queueCounts, len(t.Queues))}
		for i, counted := range t.Queues {
			shown.Queues[i] = queueCounts(counted)
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
	return a.metrics.Deploys(from, to)
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
	d := metrics.Deploy{Label: body.Label, At: at, Actor: auth.PrincipalOf(in.Request()).Name}
	m, err := wire.Rollup{Type: wire.TypeDeploy, Label: d.Label, At: d.At, Actor: d.Actor}.Message(now)
	if err != nil {
		return err
	}
	if err := a.publish(in.Request().Context(), m); err != nil {
		return problem.Unavailable(err, "the broker did not take it: nothing was done")
	}
	return in.JSON(http.StatusCreated, d)
}
