package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type queuesCmd struct {
	List     listQueuesCmd  `cmd:"" default:"withargs" aliases:"ls" help:"List queues."`
	Show     showQueueCmd   `cmd:"" aliases:"get" help:"Show one queue."`
	Make     makeQueueCmd   `cmd:"" help:"Make a queue, ready for jobs."`
	Delete   deleteQueueCmd `cmd:"" aliases:"rm" help:"Delete a queue, with all jobs in it."`
	Pause    pauseQueueCmd  `cmd:"" help:"Pause a queue: workers take no jobs of it."`
	Resume   resumeQueueCmd `cmd:"" help:"Resume a paused queue."`
	Move     moveQueueCmd   `cmd:"" help:"Move all waiting jobs of a queue to another queue."`
	MoveType moveTypeCmd    `cmd:"" help:"Replace a queue by one of another type, with its jobs. Shows what that does and asks."`
	Purge    purgeQueueCmd  `cmd:"" help:"Delete all waiting jobs of a queue."`
	Peek     peekQueueCmd   `cmd:"" help:"Show the jobs at the head of a queue. They are taken and put back, which marks them as redelivered."`
}

const queuesPath = "/api/job-queues"

// queueRow is a job queue, as the API gives it.
type queueRow struct {
	Name        string   `json:"name"`
	State       string   `json:"state"`
	Ready       int64    `json:"ready"`
	Unacked     *int64   `json:"unacked"`
	Consumers   int64    `json:"consumers"`
	PublishRate *float64 `json:"publish_rate"`
	AckRate     *float64 `json:"ack_rate"`
	Oldest      *struct {
		Seconds  float64 `json:"seconds"`
		Accuracy string  `json:"accuracy"`
	} `json:"oldest"`
}

func (q *queueRow) cells() []any {
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

func rate(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f/s", *r)
}

var queueColumns = []output.Column{output.Name("QUEUE"), output.State("STATE"), output.Plain("READY"), output.Plain("UNACKED"), output.Plain("OLDEST"),
	output.Plain("CONSUMERS"), output.Plain("IN"), output.Plain("OUT")}

type listQueuesCmd struct {
	lookSettings

	State string `placeholder:"STATE" help:"Only queues in this state: idle, running, paused, no_consumers, saturated or down."`
	Limit int    `short:"n" default:"100" help:"Maximum number of rows, up to 500 (${default})."`
	Page  int64  `default:"1" help:"Page of the list (${default})."`
}

// Run lists job queues.
func (c *listQueuesCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"state": c.State})
	return look(ctx, out, &c.lookSettings, queuesPath, query, printPage(c.Page, queueColumns, (*queueRow).cells))
}

// oneQueueCmd is about one queue.
type oneQueueCmd struct {
	lookSettings

	Queue string `arg:"" help:"Name of the queue, without \"queue.\" in front."`
}

func (c *oneQueueCmd) path() string { return queuesPath + "/" + apiclient.Segment(c.Queue) }

// changeQueueCmd does something to one queue.
type changeQueueCmd struct {
	oneQueueCmd

	Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

func (c *changeQueueCmd) do(ctx context.Context, method, more string) error {
	_, err := c.APIClient().Do(ctx, apiclient.Request{Method: method, Path: c.path() + more, Body: output.Fields{"reason": c.Reason}.JSON()})
	return err
}

// act does something to the queue and says what is so now.
func (c *changeQueueCmd) act(ctx context.Context, out output.Streams, method, more, done string) error {
	if err := c.do(ctx, method, more); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"queue": c.Queue, "done": done}, "queue %q %s", c.Queue, done)
}

// now asks for the queue as it is now.
func (c *oneQueueCmd) now(ctx context.Context) (*queueRow, error) {
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: c.path()})
	if err != nil {
		return nil, err
	}
	return apiclient.Decode[queueRow](body)
}

type (
	showQueueCmd   struct{ oneQueueCmd }
	makeQueueCmd   struct{ changeQueueCmd }
	pauseQueueCmd  struct{ changeQueueCmd }
	resumeQueueCmd struct{ changeQueueCmd }
	deleteQueueCmd struct {
		changeQueueCmd
		output.Confirm
	}
	purgeQueueCmd struct {
		changeQueueCmd
		output.Confirm
	}
	moveQueueCmd struct {
		changeQueueCmd

		To string `arg:"" help:"Name of the queue to move the jobs to."`
	}
	peekQueueCmd struct {
		oneQueueCmd

		Count int `short:"n" default:"20" help:"Maximum number of jobs, up to 100 (${default})."`
	}
)

// Run prints one queue.
func (c *showQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return c.lookAt(ctx, out, c.path(), nil)
}

// Run makes a queue.
func (c *makeQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return c.act(ctx, out, http.MethodPut, "", "exists")
}

// Run deletes a queue, with the jobs in it.
func (c *deleteQueueCmd) Run(ctx context.Context, out output.Streams) error {
	q, err := c.now(ctx)
	if err != nil {
		return err
	}
	jobs := q.jobs()
	if err := c.Ask(out, "Delete queue %q with %s in it?", c.Queue, wire.Counted(jobs, "job")); err != nil {
		return err
	}
	if err := c.do(ctx, http.MethodDelete, ""); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"queue": c.Queue, "done": "deleted", "jobs": jobs}, "queue %q deleted, with %s in it", c.Queue, wire.Counted(jobs, "job"))
}

// jobs is how many jobs are in a queue, those that workers have included.
func (q *queueRow) jobs() int64 {
	if q.Unacked == nil {
		return q.Ready
	}
	return q.Ready + *q.Unacked
}

// Run pauses a queue.
func (c *pauseQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return c.act(ctx, out, http.MethodPut, "/pause", "paused")
}

// Run lets workers take jobs of a queue again.
func (c *resumeQueueCmd) Run(ctx context.Context, out output.Streams) error {
	return c.act(ctx, out, http.MethodPut, "/resume", "resumed")
}

// Run moves the jobs of a queue, in as many steps as that takes.
func (c *moveQueueCmd) Run(ctx context.Context, out output.Streams) error {
	for moved := 0; ; {
		body, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: c.path() + "/move", Body: output.Fields{"to": c.To, "reason": c.Reason}.JSON()})
		if err != nil {
			return err
		}
		var did struct {
			Moved    int
			Complete bool
		}
		if err := json.Unmarshal(body, &did); err != nil {
			return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
		}
		if moved += did.Moved; did.Complete || did.Moved == 0 {
			return c.Printer(out).Done(output.Fields{"queue": c.Queue, "done": "moved", "jobs": moved, "to": c.To},
				"%s moved from queue %q to queue %q", wire.Counted(int64(moved), "job"), c.Queue, c.To)
		}
	}
}

// Run drops all jobs that wait in a queue.
func (c *purgeQueueCmd) Run(ctx context.Context, out output.Streams) error {
	q, err := c.now(ctx)
	if err != nil {
		return err
	}
	if err := c.Ask(out, "Delete %s that wait in queue %q?", wire.Counted(q.Ready, "job"), c.Queue); err != nil {
		return err
	}
	if err := c.do(ctx, http.MethodDelete, "/jobs"); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"queue": c.Queue, "done": "purged", "jobs": q.Ready}, "queue %q purged: %s deleted", c.Queue, wire.Counted(q.Ready, "job"))
}

// peeked is a job at the head of a queue, as the API gives it.
type peeked struct {
	MessageID   string `json:"message_id"`
	Priority    int64  `json:"priority"`
	Redelivered bool   `json:"redelivered"`
	Size        int64  `json:"size"`
	Body        string `json:"body"`
}

// Run prints the jobs at the head of a queue.
func (c *peekQueueCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{"count": {strconv.Itoa(c.Count)}}
	return look(ctx, out, &c.lookSettings, c.path()+"/jobs", query, func(p *output.Printer, jobs *[]peeked) error {
		columns := []output.Column{output.ID("MESSAGE"), output.Plain("PRIORITY"), output.Plain("REDELIVERED"), output.Plain("BYTES"), output.Text("BODY")}
		t := output.TableOf(columns, *jobs, func(j *peeked) []any { return []any{j.MessageID, j.Priority, j.Redelivered, j.Size, j.Body} })
		if err := p.Table(t); err != nil {
			return err
		}
		n := int64(len(*jobs))
		return p.Note("%s", summary(n, n, nil, 0))
	})
}
