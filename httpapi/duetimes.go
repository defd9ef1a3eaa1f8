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
	maxSteps    = 1000
	defaultSpan = 24 * time.Hour
	mostStep    = int64(366 * 24 * 60 * 60)
)

// dueTimes is how many entries are due when.
type dueTimes struct {
	Set      string  `json:"set"`
	From     float64 `json:"from"`
	Step     int64   `json:"step"`   // seconds
	Counts   []int64 `json:"counts"` // of each step, the first beginning at from
	Before   int64   `json:"before"` // entries that were due before from
	After    int64   `json:"after"`  // entries that are due later than the last step, or at a time that was not looked at
	Complete bool    `json:"complete"`
}

// listDueTimes counts entries by the time at which they are due.
func (s *Server) listDueTimes(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), "set", "from", "to", "step")
	if err != nil {
		return err
	}
	d, from, to, err := s.dueTimesOf(p)
	if err != nil {
		return err
	}
	stream := wire.ScheduledJobs
	if d.Set == "retries" {
		stream = wire.Retries
	}
	return s.share(c, func(context.Context) (any, error) {
		err := s.countDue(&d, stream, from, to)
		return d, err
	})
}

// countDue counts into the steps.
func (s *Server) countDue(d *dueTimes, stream string, from, to time.Time) error {
	looked, counted := int64(0), int64(0)
	err := s.cfg.Entries.List(stream, tracker.Cursor{}, func(r tracker.Row) bool {
		switch {
		case !r.At.Before(to):
			return false
		case looked == s.maxSearched:
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
	d.After = max(0, s.cfg.Entries.Total(stream)-d.Before-counted)
	return err
}

func (s *Server) dueTimesOf(p problem.Params) (d dueTimes, from, to time.Time, err error) {
	d = dueTimes{Set: p["set"], Complete: true}
	if d.Set == "" {
		d.Set = "scheduled-jobs"
	}
	if d.Set != "scheduled-jobs" && d.Set != "retries" {
		return d, from, to, problem.BadRequest("parameter set is %q: it must be scheduled-jobs or retries", problem.Shorten(d.Set))
	}
	if from, err = p.Time("from", s.cfg.Now()); err != nil {
		return d, from, to, err
	}
	if from.IsZero() {
		from = s.cfg.Now().UTC().Truncate(time.Minute)
	}
	if to, err = p.Time("to", s.cfg.Now()); err != nil {
		return d, from, to, err
	}
	if to.IsZero() {
		to = from.Add(defaultSpan)
	}
	span := max(0, (to.UnixMicro()-from.UnixMicro()+1e6-1)/1e6) // not as a Duration: that ends at 292 years
	otherwise := max(1, (span+99)/100)
	if d.Step, err = p.Number("step", otherwise, 1, mostStep); err != nil {
		return d, from, to, err
	}
	d.Step = max(d.Step, (span+maxSteps-1)/maxSteps) // a finer one than an answer can hold becomes as fine as it can
	d.From, d.Counts = wire.Seconds(from), make([]int64, (span+d.Step-1)/d.Step)
	return d, from, to, nil
}
