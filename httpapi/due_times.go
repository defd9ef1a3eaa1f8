package httpapi

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxDueSteps = 1000
	maxDueStep  = int64(366 * 24 * 60 * 60) // seconds
)

// dueTimesAPI counts pending entries by the time at which they are due.
type dueTimesAPI struct {
	entries *tracker.Entries
	answers *answerCache
	limits  *limits
	now     func() time.Time
}

// dueTimes is how many entries are due when.
type dueTimes struct {
	Set      string  `json:"set"`
	From     float64 `json:"from"`
	Step     int64   `json:"step"`   // seconds
	Counts   []int64 `json:"counts"` // of each step, the first beginning at from
	Before   int64   `json:"before"` // entries that were due before from
	After    int64   `json:"after"`  // entries that are due after the last step, or that were not looked at
	Complete bool    `json:"complete"`
}

func (a *dueTimesAPI) list(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), "set", "from", "to", "step")
	if err != nil {
		return err
	}
	d, from, to, err := a.parse(p)
	if err != nil {
		return err
	}
	stream := wire.ScheduledJobs
	if d.Set == "retries" {
		stream = wire.Retries
	}
	return a.answers.share(c, func(context.Context) (any, error) {
		err := a.count(&d, stream, from, to)
		return d, err
	})
}

// count counts into the steps.
func (a *dueTimesAPI) count(d *dueTimes, stream string, from, to time.Time) error {
	looked, counted := int64(0), int64(0)
	err := a.entries.List(stream, tracker.Cursor{}, func(r tracker.Row) bool {
		switch {
		case !r.At.Before(to):
			return false
		case looked == a.limits.searched:
			d.Complete = false
			return false
		}
		looked++
		if r.At.Before(from) {
			d.Before++
		} else {
			d.Counts[(r.At.UnixMicro()-from.UnixMicro())/(d.Step*1e6)]++
			counted++
		}
		return true
	})
	d.After = max(0, a.entries.Total(stream)-d.Before-counted)
	return err
}

func (a *dueTimesAPI) parse(p problem.Params) (d dueTimes, from, to time.Time, err error) {
	d = dueTimes{Set: p["set"], Complete: true}
	if d.Set == "" {
		d.Set = "scheduled-jobs"
	}
	if d.Set != "scheduled-jobs" && d.Set != "retries" {
		return d, from, to, problem.BadRequest("parameter set is %q: it must be scheduled-jobs or retries", problem.Shorten(d.Set))
	}
	if from, to, err = p.Period(a.now()); err != nil {
		return d, from, to, err
	}
	if from.IsZero() {
		from = a.now().UTC().Truncate(time.Minute)
	}
	if to.IsZero() {
		to = from.Add(24 * time.Hour)
	}
	span := max(0, (to.UnixMicro()-from.UnixMicro()+1e6-1)/1e6) // no Duration: that ends at 292 years
	otherwise := max(1, (span+99)/100)
	if d.Step, err = p.Number("step", otherwise, 1, maxDueStep); err != nil {
		return d, from, to, err
	}
	d.Step = max(d.Step, (span+maxDueSteps-1)/maxDueSteps) // as fine as an answer can hold
	d.From, d.Counts = wire.Seconds(from), make([]int64, (span+d.Step-1)/d.Step)
	return d, from, to, nil
}
