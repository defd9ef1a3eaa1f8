package httpapi

import (
	"cmp"
	"context"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
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
	lists   tracker.Lists
	counts  *tracker.Counts
	answers *answerCache
	limits  *limits
	now     func() time.Time
}

func (a *dueTimesAPI) list(in *problem.Request) (any, error) {
	in.Query("set", "from", "to", "step")
	d, from, to := a.read(in)
	stream := wire.ScheduledJobs
	if d.Set == "retries" {
		stream = wire.Retries
	}
	return a.answers.share(in, func(context.Context) (any, error) {
		err := a.count(&d, stream, from, to)
		return d, err
	})
}

func (a *dueTimesAPI) count(d *answer.DueTimes, stream string, from, to time.Time) error {
	looked, counted := int64(0), int64(0)
	err := a.lists.List(stream, tracker.Cursor{}, func(r tracker.Row) bool {
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
	d.After = max(0, a.counts.Total(stream)-d.Before-counted)
	return err
}

func (a *dueTimesAPI) read(in *problem.Request) (d answer.DueTimes, from, to time.Time) {
	d = answer.DueTimes{Set: cmp.Or(in.Text("set"), "scheduled-jobs"), Complete: true}
	if d.Set != "scheduled-jobs" && d.Set != "retries" {
		in.BadRequest("parameter set is %q: it must be scheduled-jobs or retries", problem.Shorten(d.Set))
	}
	if from, to = in.Period(a.now()); from.IsZero() {
		from = a.now().UTC().Truncate(time.Minute)
	}
	if to.IsZero() {
		to = from.Add(24 * time.Hour)
	}
	span := max(0, (to.UnixMicro()-from.UnixMicro()+1e6-1)/1e6) // a Duration ends at 292 years
	otherwise := max(1, (span+99)/100)
	step := in.Number("step", otherwise, 1, maxDueStep)
	d.Step = max(step, (span+maxDueSteps-1)/maxDueSteps) // as fine as an answer can hold
	d.From, d.Counts = wire.Seconds(from), make([]int64, (span+d.Step-1)/d.Step)
	return d, from, to
}
