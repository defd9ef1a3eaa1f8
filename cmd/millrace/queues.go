package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

type queuesCmd struct {
	List     listQueuesCmd  `cmd:"" default:"withargs" help:"List them."`
	Show     showQueueCmd   `cmd:"" help:"Show one."`
	Make     makeQueueCmd   `cmd:"" help:"Make one, ready for jobs."`
	Delete   deleteQueueCmd `cmd:"" help:"Delete one, with all jobs in it."`
	Pause    pauseQueueCmd  `cmd:"" help:"Have nobody take jobs of one."`
	Resume   resumeQueueCmd `cmd:"" help:"Have workers take its jobs again."`
	Move     moveQueueCmd   `cmd:"" help:"Move all jobs that wait in one to another."`
	MoveType moveTypeCmd    `cmd:"" help:"Make one a queue of another type, with the jobs that it has. Without --yes it only says what that does."`
	Purge    purgeQueueCmd  `cmd:"" help:"Drop all jobs that wait in one."`
	Peek     peekQueueCmd   `cmd:"" help:"Look at the jobs at the head of one: they are taken and put back, which marks them as redelivered."`
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

func (q *queueRow) cells() []string {
	oldest := "-"
	if q.Oldest != nil {
		oldest = time.Duration(q.Oldest.Seconds * float64(time.Second)).Round(time.Second).String()
		if q.Oldest.Accuracy != "exact" {
			oldest = "over " + oldest
		}
	}
	unacked := "-"
	if q.Unacked != nil {
		unacked = strconv.FormatInt(*q.Unacked, 10)
	}
	return []string{q.Name, q.State, strconv.FormatInt(q.Ready, 10), unacked, oldest, strconv.FormatInt(q.Consumers, 10), rate(q.PublishRate), rate(q.AckRate)}
}

func rate(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f/s", *r)
}

type listQueuesCmd struct {
	lookSettings

	State string `placeholder:"STATE" help:"Only those that are idle, running, no_consumers, down."`
	Limit int    `default:"100" help:"How many at most, up to 500."`
	Page  int64  `default:"1" help:"Which page of them."`
}

// Run lists job queues.
func (c *listQueuesCmd) Run(ctx context.Context, out output) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"state": c.State})
	titles := []string{"QUEUE", "STATE", "READY", "UNACKED", "OLDEST", "CONSUMERS", "IN", "OUT"}
	return look(ctx, out, &c.lookSettings, queuesPath, query, printPage(c.Page, titles, (*queueRow).cells))
}

// oneQueueCmd is about one queue.
type oneQueueCmd struct {
	clientSettings

	Queue string `arg:"" help:"Its name, without queue."`
}

func (c *oneQueueCmd) path() string { return queuesPath + "/" + segment(c.Queue) }

func (c *oneQueueCmd) print(ctx context.Context, out output, path string, query url.Values) error {
	body, err := c.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	return printJSON(out.Out, body)
}

// changeQueueCmd does something to one queue.
type changeQueueCmd struct {
	oneQueueCmd

	Reason string `help:"Why; the journal keeps it."`
}

func (c *changeQueueCmd) do(ctx context.Context, out output, method, more, done string) error {
	if _, err := c.client().do(ctx, method, c.path()+more, nil, fields{"reason": c.Reason}.json()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Out, "%s: %s\n", c.Queue, done)
	return err
}

type (
	showQueueCmd   struct{ oneQueueCmd }
	makeQueueCmd   struct{ changeQueueCmd }
	deleteQueueCmd struct{ changeQueueCmd }
	purgeQueueCmd  struct{ changeQueueCmd }
	pauseQueueCmd  struct{ changeQueueCmd }
	resumeQueueCmd struct{ changeQueueCmd }
	moveQueueCmd   struct {
		changeQueueCmd

		To string `arg:"" help:"Where to."`
	}
	peekQueueCmd struct {
		oneQueueCmd

		Count int `default:"20" help:"How many at most, up to 100."`
	}
)

// Run prints one queue.
func (c *showQueueCmd) Run(ctx context.Context, out output) error {
	return c.print(ctx, out, c.path(), nil)
}

// Run makes a queue.
func (c *makeQueueCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodPut, "", "it is there")
}

// Run deletes a queue.
func (c *deleteQueueCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodDelete, "", "deleted")
}

// Run pauses a queue.
func (c *pauseQueueCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodPut, "/pause", "paused")
}

// Run has a queue go on.
func (c *resumeQueueCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodPut, "/resume", "goes on")
}

// Run moves the jobs of a queue, in as many steps as that takes.
func (c *moveQueueCmd) Run(ctx context.Context, out output) error {
	for moved := 0; ; {
		body, err := c.client().do(ctx, http.MethodPost, c.path()+"/move", nil, fields{"to": c.To, "reason": c.Reason}.json())
		if err != nil {
			return err
		}
		var did struct {
			Moved    int
			Complete bool
		}
		if err := json.Unmarshal(body, &did); err != nil {
			return err
		}
		if moved += did.Moved; did.Complete || did.Moved == 0 {
			_, err := fmt.Fprintf(out.Out, "%s: %s moved to %s\n", c.Queue, wire.Counted(int64(moved), "job"), c.To)
			return err
		}
	}
}

// fields are what a request's body says, without what is empty.
type fields map[string]any

func (f fields) json() []byte {
	maps.DeleteFunc(f, func(_ string, v any) bool { return v == "" })
	body, err := json.Marshal(f)
	if err != nil { // texts and numbers
		panic(err)
	}
	return body
}

// Run purges a queue.
func (c *purgeQueueCmd) Run(ctx context.Context, out output) error {
	return c.do(ctx, out, http.MethodDelete, "/jobs", "purged")
}

// Run prints the jobs at the head of a queue.
func (c *peekQueueCmd) Run(ctx context.Context, out output) error {
	return c.print(ctx, out, c.path()+"/jobs", url.Values{"count": {strconv.Itoa(c.Count)}})
}
