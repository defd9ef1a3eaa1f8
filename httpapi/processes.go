package httpapi

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
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
}

func newProcess(p *processes.Process) process {
	shown := process{
		Identity: p.Identity, Hostname: p.Hostname, PID: p.PID, Tag: p.Tag, Version: p.Version, State: p.State,
		HeardAt: wire.Seconds(p.Heard), Silent: p.Silent.Seconds(), Beat: wire.Seconds(p.Beat), StartedAt: secondsIf(p.StartedAt),
		Concurrency: p.Concurrency, Busy: p.Busy, RSSKB: p.RSSKB, RTTMicros: p.RTTMicros, Queues: queueNames(p.Queues),
		Weights: p.Weights, Labels: p.Labels, Lanes: slices.Clone(p.Lanes), Work: []runningJob{}, Cut: p.Cut,
	}
	for i := range shown.Lanes {
		shown.Lanes[i].Queues = queueNames(shown.Lanes[i].Queues)
	}
	for _, w := range p.Work {
		shown.Work = append(shown.Work, runningJob{w.JID, w.Class, wire.QueueName(w.Queue), secondsIf(w.StartedAt)})
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
	p, err := parseParams(c.Request(), append([]string{"state", "queue"}, pageParams...)...)
	if err != nil {
		return err
	}
	q, err := p.parsePage()
	if err != nil {
		return err
	}
	all := s.processes()
	found := []process{}
	for i := range all {
		one := newProcess(&all[i])
		if (p["state"] == "" || one.State == p["state"]) && (p["queue"] == "" || slices.Contains(one.Queues, p["queue"])) {
			found = append(found, one)
		}
	}
	return writeList(c, q, len(all), found)
}

// showProcess shows one.
func (s *Server) showProcess(c echo.Context) error {
	if _, err := parseParams(c.Request()); err != nil {
		return err
	}
	identity, err := pathParam(c, "identity")
	if err != nil {
		return err
	}
	if s.cfg.Processes != nil {
		if p, ok := s.cfg.Processes.Get(identity); ok {
			return c.JSON(http.StatusOK, newProcess(&p))
		}
	}
	return noProcess(identity)
}

func noProcess(identity string) error {
	return newProblem(http.StatusNotFound, "no process %q is known: it was not heard for an hour, or never, or said that it stops and did", shorten(identity))
}

// everyProcess stands for an identity where all are meant.
const everyProcess = "*"

// controlNoted is what the journal calls what processes are told.
var controlNoted = map[string]string{wire.ControlQuiet: wire.NotedQuieted, wire.ControlStop: wire.NotedStopped}

// control tells a process, or all, to take no more jobs, or to stop.
func (s *Server) control(op string) echo.HandlerFunc {
	return func(c echo.Context) error {
		if _, err := parseParams(c.Request()); err != nil {
			return err
		}
		identity, err := pathParam(c, "identity")
		if err != nil {
			return err
		}
		reason, err := readReason(c)
		if err != nil {
			return err
		}
		signed, err := sign(c, wire.Command{Reason: reason})
		if err != nil {
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
		// A message to no process finds out whether any process listens. What cannot be done is not journaled.
		probe := wire.Controls{ID: rand.Text(), Op: op, At: wire.Seconds(s.cfg.Now())}
		if err := s.cfg.Publish(c.Request().Context(), probe.Message(s.cfg.Now())); err != nil {
			return notHeard(err)
		}
		if err := s.noted(c, wire.Noted{Op: controlNoted[op], Identity: identity}, signed.Reason); err != nil {
			return err
		}
		said := wire.Controls{ID: rand.Text(), Op: op, Identity: identity, At: wire.Seconds(s.cfg.Now()), Actor: signed.Actor, Reason: signed.Reason}
		if err := s.cfg.Publish(c.Request().Context(), said.Message(s.cfg.Now())); err != nil {
			return notHeard(err)
		}
		return c.JSON(http.StatusAccepted, struct {
			ID string `json:"id"`
		}{said.ID})
	}
}

func notHeard(err error) error {
	if errors.Is(err, broker.ErrReturned) {
		return newProblem(http.StatusConflict, "no process listens to %s: these workers take no commands", wire.Control)
	}
	return unavailable(err, "the broker did not take it: nothing was done")
}
