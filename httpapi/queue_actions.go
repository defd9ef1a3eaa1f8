package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// queueActionsAPI changes job queues at the broker, and looks into them.
type queueActionsAPI struct {
	onBroker  func(ctx context.Context, do func(conn *broker.Conn) error) error
	setPaused func(ctx context.Context, queue string, paused bool) error
	leader    *leader
	governed  *tracker.GovernedQueues
	watch     *queues.Watch // may be nil
	workers   *workers
	now       func() time.Time
}

const (
	queueBudget = 15 * time.Second // for what is done to a queue
	moveBudget  = 20 * time.Second // for moving jobs: a repeated request moves the rest
)

type queueAction func(ctx context.Context, conn *broker.Conn, name string) error

// make makes and binds a queue. One that is governed is not bound to jobs.direct.
func (q *queueActionsAPI) make(ctx context.Context, conn *broker.Conn, name string) error {
	if q.governed.GovernedQueue(name) != nil {
		return conn.Queues().EnsureRouted(ctx, name)
	}
	return conn.Queues().Ensure(ctx, name)
}

func deleteQueue(ctx context.Context, conn *broker.Conn, name string) error {
	return conn.Queues().Delete(ctx, wire.QueuePrefix+name, false, false)
}

func mustExist(ctx context.Context, conn *broker.Conn, name string) error {
	_, _, err := conn.Queues().Depth(ctx, wire.QueuePrefix+name)
	return err
}

// do returns a handler that journals op and then does it to a queue.
func (q *queueActionsAPI) do(op string, action queueAction) handler {
	return func(in *problem.Request) error {
		name := readQueue(in)
		reason := checkReason(in, readReason(in))
		return q.withBroker(in, name, func(ctx context.Context, conn *broker.Conn, name string) error {
			if err := q.note(ctx, in, conn, wire.Noted{Op: op, Queue: name}, reason); err != nil {
				return err
			}
			return action(ctx, conn, name)
		})
	}
}

// purge deletes the jobs that wait in a queue. The broker says how many there were.
func (q *queueActionsAPI) purge(in *problem.Request) (any, error) {
	var did answer.PurgedJobs
	err := q.do(wire.NotedPurged, func(ctx context.Context, conn *broker.Conn, name string) (err error) {
		did.Purged, err = conn.Queues().Purge(ctx, wire.QueuePrefix+name)
		return err
	})(in)
	return did, err
}

// note journals what is about to be done to a queue, if it can be done.
func (q *queueActionsAPI) note(ctx context.Context, in *problem.Request, conn *broker.Conn, n wire.Noted, reason string) error {
	waiting, _, err := conn.Queues().Depth(ctx, wire.QueuePrefix+n.Queue)
	var refusal *broker.QueueError
	missing := errors.As(err, &refusal) && refusal.Reason == broker.ReasonMissing
	switch {
	case n.Op == wire.NotedMade && err == nil:
		return nil // the queue stays as it is
	case err != nil && (n.Op != wire.NotedMade || !missing):
		return err
	}
	n.Count = int64(waiting)
	return q.leader.note(in, n, reason)
}

// withBroker does something to a queue, unless the request could not be read.
func (q *queueActionsAPI) withBroker(in *problem.Request, name string, action queueAction) error {
	if in.Err() != nil {
		return in.Err()
	}
	ctx, cancel := context.WithTimeout(in.Request().Context(), queueBudget)
	defer cancel()
	err := q.onBroker(ctx, func(conn *broker.Conn) error { return action(ctx, conn, name) })
	if err := brokerProblem(err); err != nil {
		return err
	}
	q.forget()
	return nil
}

// forget makes the next look at the queues a new one.
func (q *queueActionsAPI) forget() {
	if q.watch != nil {
		q.watch.Forget()
	}
}

// brokerProblem returns the problem that a client gets for a failed action on a queue.
func brokerProblem(err error) error {
	var refusal *broker.QueueError
	var known *problem.Problem
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refusal) && refusal.Reason == broker.ReasonMissing:
		return noQueue(wire.QueueName(refusal.Queue))
	case errors.As(err, &refusal):
		return problem.New(http.StatusConflict, "the broker refuses it: %s", refusal.Reason)
	case err != nil:
		return problem.Unavailable(err, "the broker does not do it now")
	}
	return nil
}

// pause returns a handler that pauses or resumes a queue. The leader journals it and sends it to
// the workers. Then the broker does it too, if it can.
func (q *queueActionsAPI) pause(verb string) handler {
	return func(in *problem.Request) error {
		name, reason := readQueue(in), readReason(in)
		pauses := verb == wire.CommandPause
		if pauses { // a queue that is gone may be resumed
			if err := q.withBroker(in, name, mustExist); err != nil {
				return err
			}
		}
		if err := q.leader.do(in, wire.Command{Command: verb, Queue: name, Reason: reason}); err != nil {
			return err
		}
		q.forget()
		ctx, cancel := context.WithTimeout(in.Request().Context(), queueBudget)
		defer cancel()
		if err := q.setPaused(ctx, name, pauses); err != nil {
			return problem.Unavailable(err, "the change is journaled and the workers know it, but the broker has not applied it: repeat the request")
		}
		return nil
	}
}

// move moves the jobs that wait in a queue to another.
func (q *queueActionsAPI) move(in *problem.Request) (any, error) {
	name := readQueue(in)
	var body struct {
		To     string `json:"to"`
		Reason string `json:"reason"`
	}
	in.Body(&body)
	if err := wire.CheckQueueName(body.To); err != nil {
		in.BadRequest("member to: %s", err)
	}
	if body.To == name {
		in.BadRequest("member to is the queue itself")
	}
	checkReason(in, body.Reason)
	if in.Err() != nil {
		return nil, in.Err()
	}
	began := time.Now()
	var did answer.MovedJobs
	err := q.withBroker(in, name, func(ctx context.Context, conn *broker.Conn, _ string) (err error) {
		did, err = q.moveJobs(ctx, in, conn, wire.Noted{Op: wire.NotedMoved, Queue: name, To: body.To}, body.Reason)
		return err
	})
	problem.InfoOf(in.Request()).Command = []any{"moved", did.Moved, "to", problem.Shorten(body.To), "took", time.Since(began)}
	return did, err
}

func (q *queueActionsAPI) moveJobs(ctx context.Context, in *problem.Request, conn *broker.Conn, n wire.Noted, reason string) (did answer.MovedJobs, err error) {
	// The limit is for the whole request, not for a step: jobs that were taken are moved.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveBudget)
	defer cancel()
	waiting, _, err := conn.Queues().Depth(ctx, wire.QueuePrefix+n.Queue)
	if err != nil {
		return did, err
	}
	if err := mustExist(ctx, conn, n.To); err != nil {
		return did, err
	}
	if waiting == 0 {
		did.Complete = true
		return did, nil
	}
	n.Count = int64(waiting)
	if err := q.leader.note(in, n, reason); err != nil {
		return did, err
	}
	did.Moved, err = conn.Queues().Move(ctx, wire.QueuePrefix+n.Queue, waiting, func(d wire.Delivery) wire.Message {
		return wire.MovedJob(d, n.To, q.now())
	})
	did.Complete = err == nil && (did.Moved >= waiting || ctx.Err() == nil)
	if errors.Is(err, context.DeadlineExceeded) && did.Moved > 0 {
		return did, nil // the other jobs are still there
	}
	return did, err
}

type moveTypeRequest struct {
	Type    string   `json:"type"`
	DryRun  bool     `json:"dry_run"`
	ID      string   `json:"id"`
	Timeout *float64 `json:"timeout_s"`
	Reason  string   `json:"reason"`
}

func (r *moveTypeRequest) UnmarshalJSON(raw []byte) error {
	type plain moveTypeRequest
	return problem.DecodeStrict(raw, (*plain)(r), "reason")
}

var errNoMove = errors.New("httpapi: the answer to a move has no move")

// moveType makes the leader move a queue to another type, or say what that would do. The answer
// comes once the move has begun. A request with the id of the answer follows the move.
func (q *queueActionsAPI) moveType(in *problem.Request) error {
	name := readQueue(in)
	var body moveTypeRequest
	in.Body(&body)
	if body.Type != wire.QueueClassic && body.Type != wire.QueueQuorum {
		in.BadRequest("type is %q: it must be %s or %s", problem.Shorten(body.Type), wire.QueueClassic, wire.QueueQuorum)
	}
	if body.ID != wire.ASCII(body.ID) {
		in.BadRequest("id must be printable ASCII of at most 255 characters")
	}
	cmd := wire.Command{Command: wire.CommandMoveType, Queue: name, Type: body.Type, DryRun: body.DryRun, Reason: body.Reason}
	if body.Timeout != nil {
		cmd.Within = *body.Timeout
		if least, most := wire.MoveWithinLeast.Seconds(), wire.MoveWithinMost.Seconds(); cmd.Within < least || cmd.Within > most {
			in.BadRequest("timeout_s must be from %.0f to %.0f", least, most)
		}
	}
	cmd = sign(in, cmd)
	cmd.ID = cmp.Or(body.ID, cmd.ID)
	reply, p := q.leader.send(in, cmd)
	if p != nil {
		return p
	}
	if reply.Move == nil {
		return problem.Unavailable(errNoMove, "nothing was done: the leader does not say what it does")
	}
	if !body.DryRun {
		q.forget()
	}
	return in.JSON(reply.Status, answer.TypeMove{TypeMove: *reply.Move, Processes: q.consumers(name)})
}

// consumers returns the live processes that consume a queue.
func (q *queueActionsAPI) consumers(queue string) []string {
	identities := []string{}
	all := q.workers.list()
	for i := range all {
		if _, does := processes.Serving(all[i : i+1])[queue]; does {
			identities = append(identities, all[i].Identity)
		}
	}
	return identities
}

const (
	peekDefault = 20
	peekMost    = 100
	peekBody    = 64 << 10
)

// peek shows the messages at the head of a queue.
func (q *queueActionsAPI) peek(in *problem.Request) (any, error) {
	name := readQueue(in, "count")
	count := in.Number("count", peekDefault, 1, peekMost)
	jobs := []answer.PeekedJob{}
	err := q.withBroker(in, name, func(ctx context.Context, conn *broker.Conn, name string) error {
		found, err := conn.Queues().Peek(ctx, wire.QueuePrefix+name, int(count))
		for i := range found {
			jobs = append(jobs, newPeeked(&found[i]))
		}
		return err
	})
	return jobs, err
}

func newPeeked(d *wire.Delivery) answer.PeekedJob {
	j := answer.PeekedJob{MessageID: d.MessageID, Priority: d.Priority, Redelivered: d.Redelivered, Size: len(d.Body)}
	j.Body, j.Encoding, j.Truncated = preview(d.Body, peekBody, false)
	return j
}
