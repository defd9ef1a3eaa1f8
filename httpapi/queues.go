package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// jobQueue is a job queue as clients see it. What only the management API tells is null without it.
type jobQueue struct {
	Name        string      `json:"name"`
	State       string      `json:"state"`
	Ready       int64       `json:"ready"`
	Unacked     *int64      `json:"unacked"`
	Consumers   int64       `json:"consumers"`
	PublishRate *float64    `json:"publish_rate"`
	DeliverRate *float64    `json:"deliver_rate"`
	AckRate     *float64    `json:"ack_rate"`
	GrowthRate  float64     `json:"growth_rate"`
	Bytes       *int64      `json:"bytes"`
	Oldest      *queueAge   `json:"oldest"` // null: nothing waits
	Scheduled   int64       `json:"scheduled"`
	Retries     int64       `json:"retries"`
	Dead        int64       `json:"dead"`
	Leased      int64       `json:"leased"`
	Processes   int         `json:"processes"`
	Slots       int64       `json:"slots"`
	Busy        int64       `json:"busy"`
	RejectsLost *bool       `json:"rejects_lost"`
	Held        *queueHold  `json:"held,omitempty"`
	Paused      *wire.Pause `json:"paused,omitempty"`
}

type queueAge struct {
	Seconds  float64 `json:"seconds"`
	Accuracy string  `json:"accuracy"` // exact or at_least
}

// queueHold is why jobs that are due do not come into the queue.
type queueHold struct {
	Reason string  `json:"reason"`
	Since  float64 `json:"since"`
	Until  float64 `json:"until"`
}

// What is said of a queue's state beside what the broker says.
const (
	queueRunning     = "running"
	queueIdle        = "idle"
	queueNoConsumers = "no_consumers"
	queuePaused      = "paused"
	queueSaturated   = attention.Saturated
)

// look gives the shared snapshot.
func (s *Server) look(ctx context.Context) (queues.Snapshot, error) {
	if s.cfg.Queues == nil {
		return queues.Snapshot{}, problem.Unavailable(errUnwired, "this server does not look at queues")
	}
	snap, err := s.cfg.Queues.Look(ctx)
	if err != nil {
		return snap, problem.Unavailable(err, "the broker does not report its queues now")
	}
	return snap, nil
}

func (s *Server) jobQueues(ctx context.Context) ([]jobQueue, error) {
	snap, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	usual, err := s.usual(ctx)
	if err != nil {
		return nil, err
	}
	workers := s.processes()
	serving, full := processes.Serving(workers), processes.Saturated(workers)
	held := map[string]*queueHold{}
	for _, h := range s.cfg.Leader().Held {
		held[h.Queue] = &queueHold{h.Reason, wire.Seconds(h.Since), wire.Seconds(h.Until)}
	}
	paused := s.cfg.Entries.Paused()
	all := make([]jobQueue, len(snap.Queues))
	for i := range snap.Queues {
		all[i] = s.jobQueue(&snap.Queues[i], snap.Rates, serving)
		if _, is := attention.Stalled(&snap.Queues[i], full, usual); is && all[i].State == queueRunning {
			all[i].State = queueSaturated
		}
		all[i].Held = held[all[i].Name]
		if p, is := paused[all[i].Name]; is {
			all[i].State, all[i].Paused = queuePaused, &p
		}
	}
	return all, nil
}

func (s *Server) jobQueue(q *queues.Queue, rates bool, serving map[string]processes.Slots) jobQueue {
	slots := serving[q.Name]
	shown := jobQueue{
		Name: q.Name, State: queueState(q), Ready: q.Ready, Consumers: q.Consumers, GrowthRate: q.Growth,
		Scheduled: s.cfg.Entries.InQueue(wire.ScheduledJobs, q.Name), Retries: s.cfg.Entries.InQueue(wire.Retries, q.Name),
		Dead: s.cfg.Entries.InQueue(wire.DeadJobs, q.Name), Processes: slots.Processes, Slots: slots.Slots, Busy: slots.Busy,
		Leased: s.cfg.Entries.LeasedOf(q.Name),
	}
	if q.Ready > 0 {
		shown.Oldest = &queueAge{q.Oldest.Seconds(), "at_least"}
		if q.Exact {
			shown.Oldest.Accuracy = "exact"
		}
	}
	if rates {
		lost := q.DeadLetterTo != wire.ExchangeDead
		shown.Unacked, shown.Bytes, shown.RejectsLost = &q.Unacked, &q.MessageBytes, &lost
		shown.PublishRate, shown.DeliverRate, shown.AckRate = &q.PublishRate, &q.DeliverRate, &q.AckRate
	}
	return shown
}

func queueState(q *queues.Queue) string {
	switch {
	case q.State != "" && q.State != queueRunning && q.State != queueIdle:
		return q.State // down, stopped, flow, closed
	case q.Ready > 0 && q.Consumers == 0:
		return queueNoConsumers
	case q.Ready == 0 && q.Unacked == 0 && q.PublishRate == 0 && q.DeliverRate == 0:
		return queueIdle // quick workers keep a busy queue empty: that one runs
	}
	return queueRunning
}

// listQueues lists the job queues by name.
func (s *Server) listQueues(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), append([]string{"state"}, pageParams...)...)
	if err != nil {
		return err
	}
	q, err := pageOf(p)
	if err != nil {
		return err
	}
	all, err := s.jobQueues(c.Request().Context())
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(slices.Clone(all), func(q jobQueue) bool { return p["state"] != "" && q.State != p["state"] })
	return writeList(c, q, len(all), found)
}

// showQueue shows one.
func (s *Server) showQueue(c echo.Context) error {
	name, err := queueOf(c)
	if err != nil {
		return err
	}
	all, err := s.jobQueues(c.Request().Context())
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Name == name {
			return c.JSON(http.StatusOK, all[i])
		}
	}
	return noQueue(name)
}

func noQueue(name string) error {
	return problem.New(http.StatusNotFound, "there is no queue %q", problem.Shorten(name))
}

// queueOf is the queue in the path, of a request without parameters.
func queueOf(c echo.Context, known ...string) (string, error) {
	if _, err := problem.ParseParams(c.Request(), known...); err != nil {
		return "", err
	}
	name, err := problem.PathParam(c, "queue")
	if err != nil {
		return "", err
	}
	if err := wire.CheckQueueName(name); err != nil {
		return "", problem.BadRequest("%s", err)
	}
	return name, nil
}

// queueBudget bounds what is done to a queue.
const queueBudget = 15 * time.Second

// onQueue does something to a queue, which is noted as op, and answers 204.
func (s *Server) onQueue(op string, do func(ctx context.Context, conn *broker.Conn, name string) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		name, err := queueOf(c)
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
		err = s.withBroker(c, name, func(ctx context.Context, conn *broker.Conn, name string) error {
			if err := s.noteOnQueue(ctx, c, conn, wire.Noted{Op: op, Queue: name}, reason); err != nil {
				return err
			}
			return do(ctx, conn, name)
		})
		if err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}
}

func (s *Server) withBroker(c echo.Context, name string, do func(ctx context.Context, conn *broker.Conn, name string) error) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), queueBudget)
	defer cancel()
	err := s.cfg.OnBroker(ctx, func(conn *broker.Conn) error { return do(ctx, conn, name) })
	if err := brokerProblem(err); err != nil {
		return err
	}
	if s.cfg.Queues != nil {
		s.cfg.Queues.Forget()
	}
	return nil
}

func makeQueue(ctx context.Context, conn *broker.Conn, name string) error {
	return conn.EnsureQueue(ctx, name)
}

func deleteQueue(ctx context.Context, conn *broker.Conn, name string) error {
	return conn.DeleteQueue(ctx, wire.QueuePrefix+name, false, false)
}

func purgeQueue(ctx context.Context, conn *broker.Conn, name string) error {
	_, err := conn.Purge(ctx, wire.QueuePrefix+name)
	return err
}

// peekedJob is a message at the head of a queue.
type peekedJob struct {
	MessageID   string `json:"message_id"`
	Priority    uint8  `json:"priority"`
	Redelivered bool   `json:"redelivered"` // it had been given to a worker, or looked at, before
	Size        int    `json:"size"`
	Body        string `json:"body"`
	Encoding    string `json:"encoding"` // utf-8 or base64
	Truncated   bool   `json:"truncated,omitempty"`
}

// Bounds of a peek.
const (
	peekDefault = 20
	peekMost    = 100
	peekBody    = 64 << 10
)

// peekQueue shows the messages at the head of a queue.
func (s *Server) peekQueue(c echo.Context) error {
	name, err := queueOf(c, "count")
	if err != nil {
		return err
	}
	p, err := problem.ParseParams(c.Request(), "count")
	if err != nil {
		return err
	}
	count, err := p.Number("count", peekDefault, 1, peekMost)
	if err != nil {
		return err
	}
	jobs := []peekedJob{}
	err = s.withBroker(c, name, func(ctx context.Context, conn *broker.Conn, name string) error {
		found, err := conn.Peek(ctx, wire.QueuePrefix+name, int(count))
		for i := range found {
			jobs = append(jobs, newPeeked(&found[i]))
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, jobs)
}

func newPeeked(d *wire.Delivery) peekedJob {
	body := d.Body[:min(len(d.Body), peekBody)]
	j := peekedJob{MessageID: d.MessageID, Priority: d.Priority, Redelivered: d.Redelivered, Size: len(d.Body), Encoding: "utf-8", Truncated: len(body) < len(d.Body)}
	if whole := trimRune(body); j.Truncated && utf8.Valid(whole) {
		body = whole
	}
	j.Body, j.Encoding = textOrBase64(body)
	return j
}
