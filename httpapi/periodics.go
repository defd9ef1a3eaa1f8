package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler/periodic"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// periodicsAPI shows and changes periodic jobs.
type periodicsAPI struct {
	*definer
	jobs *tracker.PeriodicJobs
	hide *redactor
	now  func() time.Time
}

// Coming ticks that are shown: of each job in a list, and of one job.
const (
	listedNext = 1
	usualNext  = 10
	mostNext   = 100
	mostEvery  = 366 * 24 * 3600 // seconds, as in a definition
)

// list lists all periodic jobs, by name.
func (a *periodicsAPI) list(in *problem.Request) (any, error) {
	in.Query()
	all := []answer.PeriodicJob{}
	for _, j := range a.jobs.PeriodicJobs() {
		all = append(all, a.answer(a.hide.of(in), j, listedNext))
	}
	return all, nil
}

func (a *periodicsAPI) show(in *problem.Request) (any, error) {
	name := in.PathParam("name")
	in.Query("next")
	n := in.Number("next", usualNext, 0, mostNext)
	j := a.jobs.PeriodicJob(name)
	if j == nil {
		return nil, problem.New(http.StatusNotFound, "there is no periodic job %q", problem.Shorten(name))
	}
	shown := a.answer(a.hide.of(in), j, int(n))
	shown.Ticks = slices.Clone(j.Recent)
	slices.Reverse(shown.Ticks)
	return shown, nil
}

// ticks lists the next ticks of a schedule that no job needs to have.
func (a *periodicsAPI) ticks(in *problem.Request) (any, error) {
	in.Query("cron", "every", "tz", "n", "from")
	n := in.Number("n", usualNext, 1, mostNext)
	def := wire.Periodic{Cron: in.Text("cron"), TZ: in.Text("tz"), Every: in.Number("every", 0, 1, mostEvery)}
	if (def.Cron == "") == (def.Every == 0) {
		in.BadRequest("give either cron or every")
	}
	at, _ := in.Period(a.now())
	if at.IsZero() {
		at = a.now()
	}
	s, err := periodic.New(&def)
	if err != nil {
		in.BadRequest("%s", err)
	}
	if in.Err() != nil {
		return nil, in.Err()
	}
	return answer.NextTicks{Next: s.NextOf(&wire.PeriodicJob{}, at.Unix(), int(n))}, nil
}

// answer returns the answer about a job, with its next n ticks.
func (a *periodicsAPI) answer(hide *redactor, j *wire.PeriodicJob, n int) answer.PeriodicJob {
	shown := answer.PeriodicJob{Name: j.Name, State: "active", Definition: json.RawMessage("{}"), Layers: map[string]answer.PeriodicLayer{}, Next: []int64{}}
	for name, l := range j.Layers {
		value, _ := hide.record(l.Value)
		shown.Layers[name] = answer.PeriodicLayer{Source: l.Source, Value: value, At: l.At, Actor: l.Actor}
	}
	for i := range j.Recent {
		if j.Recent[i].IsTick() && j.Recent[i].Tick <= j.Through {
			shown.Last = &j.Recent[i]
		}
	}
	var def wire.Periodic
	merged, err := j.Merged()
	if err == nil {
		shown.Definition, _ = hide.record(merged)
		def, err = wire.ParseWhole(merged)
	}
	if shown.Schedule = scheduleOf(&def); def.Paused {
		shown.State = "paused"
	}
	if job, fault := wire.ParseJob(def.Job); fault == nil {
		shown.Class, shown.Queue = job.Class, job.Queue
	}
	if err == nil {
		var s *periodic.Schedule
		if s, err = periodic.New(&def); err == nil {
			shown.Next = append(shown.Next, s.NextOf(j, a.now().Unix(), n)...)
		}
	}
	if err != nil {
		shown.State, shown.Problem = "incomplete", err.Error()
	}
	return shown
}

// scheduleOf returns when a job is due, in words.
func scheduleOf(p *wire.Periodic) string {
	switch {
	case p.Every > 0:
		return "every " + (time.Duration(p.Every) * time.Second).String()
	case p.TZ != "":
		return p.Cron + " " + p.TZ
	}
	return p.Cron
}

func periodicNamed(c *wire.Command, name string) { c.Periodic = name }

func periodicDefined(one json.RawMessage) wire.Definitions {
	return wire.Definitions{PeriodicJobs: []json.RawMessage{one}}
}

// run enqueues the job of a periodic job now.
func (a *periodicsAPI) run(in *problem.Request) error {
	name := in.PathParam("name")
	in.Query()
	reply, err := a.command(in, wire.Command{Command: wire.CommandRun, Periodic: name, Reason: readReason(in)})
	if err != nil {
		return err
	}
	in.Response().Header().Set("Location", fmt.Sprintf("/api/jobs/%s", reply.JID))
	return in.JSON(http.StatusCreated, answer.RunJob{JID: reply.JID})
}

type skipRequest struct {
	Tick   *int64 `json:"tick"`
	Reason string `json:"reason"`
}

// UnmarshalJSON refuses a tick that is null: it would be another one.
func (r *skipRequest) UnmarshalJSON(raw []byte) error {
	type plain skipRequest
	return problem.DecodeStrict(raw, (*plain)(r), "reason")
}

// skip skips a coming tick.
func (a *periodicsAPI) skip(in *problem.Request) (any, error) {
	name := in.PathParam("name")
	in.Query()
	var body skipRequest
	in.Body(&body)
	reply, err := a.command(in, wire.Command{Command: wire.CommandSkip, Periodic: name, Tick: body.Tick, Reason: body.Reason})
	return answer.SkippedTick{Tick: reply.Tick}, err
}
