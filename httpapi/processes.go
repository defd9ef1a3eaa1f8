package httpapi

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/wire"
)

// process is a worker process as clients see it.
type process struct {
	Identity    string            `json:"identity"`
	Hostname    string            `json:"hostname"`
	PID         int64             `json:"pid"`
	Tag         string            `json:"tag"`
	Version     string            `json:"version"`
	State       string            `json:"state"`
	HeardAt     float64           `json:"heard_at"`
	Silent      float64           `json:"silent_seconds"`
	Beat        float64           `json:"beat"`       // by the worker's own clock
	StartedAt   *float64          `json:"started_at"` // null: it does not say
	Concurrency int64             `json:"concurrency"`
	Busy        int64             `json:"busy"`
	RSSKB       int64             `json:"rss_kb"`
	RTTMicros   int64             `json:"rtt_us"`
	Queues      []string          `json:"queues"`
	Weights     map[string]int64  `json:"weights,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Lanes       []wire.Lane       `json:"lanes,omitempty"`
	Work        []runningJob      `json:"work"`
	Cut         bool              `json:"cut,omitempty"` // some of what it said is left out
}

type runningJob struct {
	JID       string   `json:"jid"`
	Class     string   `json:"class"`
	Queue     string   `json:"queue"`
	StartedAt *float64 `json:"started_at"` // null: it does not say
	Usual     *float64 `json:"usual_ms"`   // how long its class usually runs; null: that is not known
	Stuck     bool     `json:"stuck,omitempty"`
}

func newProcess(p *processes.Process, usual map[string]time.Duration) process {
	shown := process{
		Identity: p.Identity, Hostname: p.Hostname, PID: p.PID, Tag: p.Tag, Version: p.Version, State: p.State,
		HeardAt: wire.Seconds(p.Heard), Silent: p.Silent.Seconds(), Beat: wire.Seconds(p.Beat), StartedAt: secondsIf(p.StartedAt),
		Concurrency: p.Concurrency, Busy: p.Busy, RSSKB: p.RSSKB, RTTMicros: p.RTTMicros, Queues: queueNames(p.Queues),
		Weights: p.Weights, Labels: p.Labels, Lanes: slices.Clone(p.Lanes), Work: []runningJob{}, Cut: p.Cut,
	}
	for i := range shown.Lanes {
		shown.Lanes[i].Queues = queueNames(shown.Lanes[i].Queues)
	}
	for i := range p.Work {
		shown.Work = append(shown.Work, newRunning(p, &p.Work[i], usual))
	}
	return shown
}

// queueNames gives names as the API has them, whatever the worker calls them.
func queueNames(said []string) []string {
	all := make([]string, len(said))
	for i, q := range said {
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

func (s *Server) processes() []processes.Process {
	if s.cfg.Processes == nil {
		return nil
	}
	return s.cfg.Processes.List()
}

// listProcesses lists the worker processes by identity.
func (s *Server) listProcesses(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), append([]string{"state", "queue"}, pageParams...)...)
	if err != nil {
		return err
	}
	q, err := pageOf(p)
	if err != nil {
		return err
	}
	usual, err := s.usual(c.Request().Context())
	if err != nil {
		return err
	}
	all := s.processes()
	found := []process{}
	for i := range all {
		one := newProcess(&all[i], usual)
		if (p["state"] == "" || one.State == p["state"]) && (p["queue"] == "" || slices.Contains(one.Queues, p["queue"])) {
			found = append(found, one)
		}
	}
	return writeList(c, q, len(all), found)
}

// showProcess shows one.
func (s *Server) showProcess(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	identity, err := problem.PathParam(c, "identity")
	if err != nil {
		return err
	}
	if s.cfg.Processes != nil {
		if p, ok := s.cfg.Processes.Get(identity); ok {
			usual, err := s.usual(c.Request().Context())
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, newProcess(&p, usual))
		}
	}
	return noProcess(identity)
}

func noProcess(identity string) error {
	return problem.New(http.StatusNotFound, "no process %q: it has stopped, or sent no heartbeat in the last hour", problem.Shorten(identity))
}

// everyProcess stands for an identity where all are meant.
const everyProcess = "*"

// controlNoted is what the journal calls what processes are told.
var controlNoted = map[string]string{wire.ControlQuiet: wire.NotedQuieted, wire.ControlStop: wire.NotedStopped, wire.ControlCancel: wire.NotedCancelled}

// control tells a process, or all, to take no more jobs, or to stop.
func (s *Server) control(op string) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := problem.NoParams(c); err != nil {
			return err
		}
		identity, err := problem.PathParam(c, "identity")
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		if _, err := reasonGiven(c, reason); err != nil {
			return err
		}
		if identity != everyProcess {
			if s.cfg.Processes == nil {
				return noProcess(identity)
			}
			if _, ok := s.cfg.Processes.Get(identity); !ok {
				return noProcess(identity)
			}
		}
		id, err := s.tellWorkers(c, wire.Controls{Op: op, Identity: identity}, reason)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusAccepted, struct {
			ID string `json:"id"`
		}{id})
	}
}

// tellWorkers asks workers for something, after the journal has who asks for it and why.
func (s *Server) tellWorkers(c echo.Context, said wire.Controls, reason string) (id string, err error) {
	signed, err := sign(c, wire.Command{Reason: reason})
	if err != nil {
		return "", err
	}
	// A message to no process finds out whether any process listens. What cannot be done is not journaled.
	probe := wire.Controls{ID: rand.Text(), Op: said.Op, At: wire.Seconds(s.cfg.Now())}
	if err := s.cfg.Publish(c.Request().Context(), probe.Message(s.cfg.Now())); err != nil {
		return "", notHeard(err)
	}
	if err := s.noted(c, wire.Noted{Op: controlNoted[said.Op], Identity: said.Identity, JID: said.JID}, signed.Reason); err != nil {
		return "", err
	}
	said.ID, said.At, said.Actor, said.Reason = rand.Text(), wire.Seconds(s.cfg.Now()), signed.Actor, signed.Reason
	if err := s.cfg.Publish(c.Request().Context(), said.Message(s.cfg.Now())); err != nil {
		return "", notHeard(err)
	}
	return said.ID, nil
}

// cancelJob asks the process that runs a job to cancel it.
func (s *Server) cancelJob(c echo.Context) error {
	jid, err := problem.PathParam(c, "jid")
	if err != nil {
		return err
	}
	if err := problem.NoParams(c); err != nil {
		return err
	}
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	if _, err := reasonGiven(c, reason); err != nil {
		return err
	}
	identity, err := s.runsOn(jid)
	if err != nil {
		return err
	}
	id, err := s.tellWorkers(c, wire.Controls{Op: wire.ControlCancel, Identity: identity, JID: jid}, reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, struct {
		ID       string `json:"id"`
		Identity string `json:"identity"`
	}{id, identity})
}

// runsOn returns the process that says that it runs a job; everyProcess where several do, or where one has more jobs than it lists.
func (s *Server) runsOn(jid string) (identity string, err error) {
	unlisted := false
	workers := s.processes()
	for i := range workers {
		p := &workers[i]
		if p.State == processes.Lost {
			continue
		}
		unlisted = unlisted || p.Busy > int64(len(p.Work))
		for j := range p.Work {
			if p.Work[j].JID == jid && identity != p.Identity {
				if identity != "" {
					return everyProcess, nil
				}
				identity = p.Identity
			}
		}
	}
	if identity != "" {
		return identity, nil
	}
	if unlisted {
		return everyProcess, nil
	}
	return "", s.notRunning(jid)
}

// notRunning says why a job cannot be cancelled.
func (s *Server) notRunning(jid string) error {
	held, err := s.cfg.Entries.Leases(jid)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return problem.New(http.StatusConflict, "the job is leased over HTTP: only its holder can end it")
	}
	found, err := s.waiting(jid)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return problem.New(http.StatusConflict, "the job does not run: it waits in %s, delete it there", setOf(found[0].Stream))
	}
	return problem.New(http.StatusNotFound, "no worker process says that it runs this job: one that has just begun is listed with the next heartbeat, within 10 seconds")
}

func notHeard(err error) error {
	if errors.Is(err, broker.ErrReturned) {
		return problem.New(http.StatusConflict, "no process listens to %s: these workers take no commands", wire.Control)
	}
	return problem.Unavailable(err, "the broker did not take it: nothing was done")
}
