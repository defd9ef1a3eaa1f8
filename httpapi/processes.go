package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// processesAPI shows worker processes, and stops them.
type processesAPI struct {
	workers  *workers
	controls *controls
}

func newProcess(p *processes.Process, usual map[string]time.Duration) answer.Process {
	shown := answer.Process{
		Identity: p.Identity, Hostname: p.Hostname, PID: p.PID, Tag: p.Tag, Version: p.Version, State: p.State,
		HeardAt: wire.Seconds(p.Heard), Silent: p.Silent.Seconds(), Beat: wire.Seconds(p.Beat), StartedAt: secondsIf(p.StartedAt),
		Concurrency: p.Concurrency, Busy: p.Busy, RSSKB: p.RSSKB, RTTMicros: p.RTTMicros, Queues: queueNames(p.Queues),
		Weights: p.Weights, Labels: p.Labels, Lanes: slices.Clone(p.Lanes), Work: []answer.RunningJob{}, Cut: p.Cut,
	}
	for i := range shown.Lanes {
		shown.Lanes[i].Queues = queueNames(shown.Lanes[i].Queues)
	}
	for i := range p.Work {
		shown.Work = append(shown.Work, newRunning(p, &p.Work[i], usual))
	}
	return shown
}

func newRunning(p *processes.Process, w *wire.Work, usual map[string]time.Duration) answer.RunningJob {
	job := answer.RunningJob{JID: w.JID, Class: w.Class, Queue: wire.QueueName(w.Queue), StartedAt: secondsIf(w.StartedAt)}
	if u, known := usual[w.Class]; known {
		ms := millis(u)
		job.Usual, job.Stuck = &ms, attention.Stuck(p.Age(w), u)
	}
	return job
}

func newRunningOn(p *processes.Process, job answer.RunningJob) answer.RunningOn {
	return answer.RunningOn{Identity: p.Identity, State: p.State, HeardAt: wire.Seconds(p.Heard), RunningJob: job}
}

// queueNames returns names as the API has them; workers may report them with their prefix.
func queueNames(reported []string) []string {
	all := make([]string, len(reported))
	for i, q := range reported {
		all[i] = wire.QueueName(q)
	}
	return all
}

func secondsIf(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	seconds := wire.Seconds(t)
	return &seconds
}

func (a *processesAPI) list(in *problem.Request) (any, error) {
	in.Query(append([]string{"state", "queue"}, pageParams...)...)
	page, state, queue := readPaging(in), in.Text("state"), in.Text("queue")
	usual, err := a.workers.usual(in.Request().Context())
	if err != nil {
		return nil, err
	}
	all := a.workers.list()
	found := []answer.Process{}
	for i := range all {
		one := newProcess(&all[i], usual)
		if (state == "" || one.State == state) && (queue == "" || slices.Contains(one.Queues, queue)) {
			found = append(found, one)
		}
	}
	return pageOf(page, len(all), found), nil
}

func (a *processesAPI) show(in *problem.Request) (any, error) {
	in.Query()
	identity := in.PathParam("identity")
	p, ok := a.workers.get(identity)
	if !ok {
		return nil, noProcess(identity)
	}
	usual, err := a.workers.usual(in.Request().Context())
	return newProcess(&p, usual), err
}

func noProcess(identity string) error {
	return problem.New(http.StatusNotFound, "no process %q: it has stopped, or sent no heartbeat in the last hour", problem.Shorten(identity))
}

// control returns a handler that has a process, or all, take no more jobs, or stop.
func (a *processesAPI) control(op string) handler {
	return func(in *problem.Request) error {
		in.Query()
		identity := in.PathParam("identity")
		reason := checkReason(in, readReason(in))
		if _, ok := a.workers.get(identity); !ok && identity != everyProcess {
			in.Fail(noProcess(identity))
		}
		id, err := a.controls.send(in, wire.Controls{Op: op, Identity: identity}, reason)
		if err != nil {
			return err
		}
		return in.JSON(http.StatusAccepted, answer.Asked{ID: id})
	}
}

// everyProcess stands for an identity where all are meant.
const everyProcess = "*"

// controls sends requests to worker processes.
type controls struct {
	leader  *leader
	publish func(ctx context.Context, m wire.Message) error
	now     func() time.Time
}

// controlOps maps a request to the operation that the journal has of it.
var controlOps = map[string]string{wire.ControlQuiet: wire.NotedQuieted, wire.ControlStop: wire.NotedStopped, wire.ControlCancel: wire.NotedCancelled}

// send journals a request and then publishes it. It returns the id of the request.
func (s *controls) send(in *problem.Request, request wire.Controls, reason string) (id string, err error) {
	signed := sign(in, wire.Command{Reason: reason})
	if in.Err() != nil {
		return "", in.Err()
	}
	// A message to no process finds out whether any process listens: else nothing is journaled.
	probe := wire.Controls{ID: rand.Text(), Op: request.Op, At: wire.Seconds(s.now())}
	if err := s.publish(in.Request().Context(), probe.Message(s.now())); err != nil {
		return "", notHeard(err)
	}
	if err := s.leader.note(in, wire.Noted{Op: controlOps[request.Op], Identity: request.Identity, JID: request.JID}, signed.Reason); err != nil {
		return "", err
	}
	request.ID, request.At, request.Actor, request.Reason = rand.Text(), wire.Seconds(s.now()), signed.Actor, signed.Reason
	if err := s.publish(in.Request().Context(), request.Message(s.now())); err != nil {
		return "", notHeard(err)
	}
	return request.ID, nil
}

func notHeard(err error) error {
	if errors.Is(err, broker.ErrReturned) {
		return problem.New(http.StatusConflict, "no process listens to %s: these workers take no commands", wire.Control)
	}
	return problem.Unavailable(err, "the broker did not take it: nothing was done")
}
