package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type queuesCmd struct {
	List     listQueuesCmd  `cmd:"" default:"withargs" aliases:"ls" help:"List queues."`
	Show     showQueueCmd   `cmd:"" aliases:"get" help:"Show one queue."`
	Make     queueActionCmd `cmd:"" help:"Make a queue, ready for jobs."`
	Delete   deleteQueueCmd `cmd:"" aliases:"rm" help:"Delete a queue, with all jobs in it."`
	Pause    queueActionCmd `cmd:"" help:"Pause a queue: workers take no jobs of it."`
	Resume   queueActionCmd `cmd:"" help:"Resume a paused queue."`
	Move     moveQueueCmd   `cmd:"" help:"Move all waiting jobs of a queue to another queue."`
	MoveType moveTypeCmd    `cmd:"" help:"Replace a queue by one of another type, with its jobs. Shows what that does and asks."`
	Purge    purgeQueueCmd  `cmd:"" help:"Delete all waiting jobs of a queue."`
	Peek     peekQueueCmd   `cmd:"" help:"Show the jobs at the head of a queue. They are taken and put back, which marks them as redelivered."`
}

const queuesPath = "/api/job-queues"

func queueCells(q *answer.Queue) []any {
	oldest := "-"
	if q.Oldest != nil {
		oldest = time.Duration(q.Oldest.Seconds * float64(time.Second)).Round(time.Second).String()
		if q.Oldest.Accuracy != "exact" {
			oldest = "over " + oldest
		}
	}
	var unacked any = "-"
	if q.Unacked != nil {
		unacked = *q.Unacked
	}
	return []any{q.Name, q.State, q.Ready, unacked, oldest, q.Consumers, rate(q.PublishRate), rate(q.AckRate)}
}

// jobsIn returns how many jobs are in a queue, including those that workers have.
func jobsIn(q *answer.Queue) int64 {
	if q.Unacked == nil {
		return q.Ready
	}
	return q.Ready + *q.Unacked
}

func rate(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f/s", *r)
}

var queueRows = rows[answer.Queue]{[]output.Column{output.Name("QUEUE"), output.State("STATE"), output.Plain("READY"), output.Plain("UNACKED"), output.Plain("OLDEST"),
	output.Plain("CONSUMERS"), output.Plain("IN"), output.Plain("OUT")}, queueCells}

type listQueuesCmd struct {
	apiFlags

	State string `placeholder:"STATE" help:"Only queues in this state: idle, running, paused, no_consumers, saturated or down."`
	pageFlags
}

// Run lists job queues.
func (c *listQueuesCmd) Run(ctx context.Context, out output.Streams) error {
	return queueRows.getPage(ctx, out, &c.apiFlags, &c.pageFlags, queuesPath, given("state", c.State))
}

// queueCmd is about one queue.
type queueCmd struct {
	apiFlags

	Queue string `arg:"" help:"Name of the queue, without \"queue.\" in front."`
}

func (c *queueCmd) path() string { return queuesPath + "/" + apiclient.Segment(c.Queue) }

type showQueueCmd struct{ queueCmd }

// Run prints one queue.
func (c *showQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, c.path(), nil)
}

// queueActionCmd does something to one queue.
type queueActionCmd struct {
	queueCmd
	reasonFlag
}

// action returns an action on the queue. did and said say what it has done.
func (c *queueActionCmd) action(method, path string, did fields, said string) action {
	did["queue"] = c.Queue
	return action{
		Request: apiclient.Request{Method: method, Path: c.path() + path, Body: fields{"reason": c.Reason}.JSON()},
		did:     did, said: fmt.Sprintf("queue %q %s", c.Queue, said),
	}
}

// Run does what the command is called.
func (c *queueActionCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	verb := k.Selected().Name
	path, done := "/"+verb, verb+"d"
	if verb == "make" {
		path, done = "", "exists"
	}
	return c.act(ctx, out, c.action(http.MethodPut, path, fields{"done": done}, done))
}

type (
	deleteQueueCmd struct {
		queueActionCmd
		output.Confirm
	}
	purgeQueueCmd struct {
		queueActionCmd
		output.Confirm
	}
	moveQueueCmd struct {
		queueActionCmd

		To string `arg:"" help:"Name of the queue to move the jobs to."`
	}
	peekQueueCmd struct {
		queueCmd

		Count int `short:"n" default:"20" help:"Maximum number of jobs, up to 100 (${default})."`
	}
)

// Run deletes a queue, with the jobs in it.
func (c *deleteQueueCmd) Run(ctx context.Context, out output.Streams) error {
	q, err := apiclient.Get[answer.Queue](ctx, c.APIClient(), c.path(), nil)
	if err != nil {
		return err
	}
	jobs := wire.Counted(jobsIn(q), "job")
	if err := c.Ask(out, "Delete queue %q with %s in it?", c.Queue, jobs); err != nil {
		return err
	}
	return c.act(ctx, out, c.action(http.MethodDelete, "", fields{"done": "deleted", "jobs": jobsIn(q)}, "deleted, with "+jobs+" in it"))
}

// Run deletes all jobs that wait in a queue.
func (c *purgeQueueCmd) Run(ctx context.Context, out output.Streams) error {
	q, err := apiclient.Get[answer.Queue](ctx, c.APIClient(), c.path(), nil)
	if err != nil {
		return err
	}
	if err := c.Ask(out, "Delete %s that wait in queue %q?", wire.Counted(q.Ready, "job"), c.Queue); err != nil {
		return err
	}
	did, err := send[answer.PurgedJobs](ctx, &c.apiFlags, http.MethodDelete, c.path()+"/jobs", c.body())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"queue": c.Queue, "done": "purged", "jobs": did.Purged},
		"queue %q purged: %s deleted", c.Queue, wire.Counted(int64(did.Purged), "job"))
}

// Run moves the jobs of a queue, in as many steps as that takes.
func (c *moveQueueCmd) Run(ctx context.Context, out output.Streams) error {
	for moved := 0; ; {
		request := fields{"to": c.To, "reason": c.Reason}
		step, err := send[answer.MovedJobs](ctx, &c.apiFlags, http.MethodPost, c.path()+"/move", request.JSON())
		if err != nil {
			return err
		}
		if moved += step.Moved; step.Complete || step.Moved == 0 {
			return c.Printer(out).Done(fields{"queue": c.Queue, "done": "moved", "jobs": moved, "to": c.To},
				"%s moved from queue %q to queue %q", wire.Counted(int64(moved), "job"), c.Queue, c.To)
		}
	}
}

var peekedRows = rows[answer.PeekedJob]{[]output.Column{output.ID("MESSAGE"), output.Plain("PRIORITY"), output.Plain("REDELIVERED"), output.Plain("BYTES"), output.Text("BODY")},
	func(j *answer.PeekedJob) []any { return []any{j.MessageID, j.Priority, j.Redelivered, j.Size, j.Body} }}

// Run prints the jobs at the head of a queue.
func (c *peekQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return peekedRows.getAll(ctx, out, &c.apiFlags, c.path()+"/jobs", url.Values{"count": {strconv.Itoa(c.Count)}})
}
