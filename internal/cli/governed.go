package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type governedCmd struct {
	List   listGovernedCmd   `cmd:"" default:"withargs" aliases:"ls" help:"List governed queues."`
	Show   showGovernedCmd   `cmd:"" aliases:"get" help:"Show one governed queue, and who defined what."`
	Set    setGovernedCmd    `cmd:"" help:"Govern a queue: its jobs wait at Millrace until limits let them begin."`
	Forget forgetGovernedCmd `cmd:"" aliases:"rm,delete" help:"Govern a queue no longer. Jobs that wait are delivered."`
	Pause  pauseGovernedCmd  `cmd:"" help:"Pause a governed queue: no job of it is delivered."`
	Resume pauseGovernedCmd  `cmd:"" help:"Resume a paused governed queue."`
}

const governedPath = "/api/governed-queues"

var governedRows = rows[answer.GovernedQueue]{[]output.Column{output.Name("QUEUE"), output.State("STATE"), output.Time("SINCE"), output.Plain("WAITING"), output.Plain("OUT")},
	func(q *answer.GovernedQueue) []any {
		state := q.State
		if q.Paused {
			state = "paused"
		}
		return []any{q.Name, state, humantime.Unix(q.Since), q.Waiting, q.Out}
	}}

type listGovernedCmd struct{ apiFlags }

// Run lists governed queues.
func (c *listGovernedCmd) Run(ctx context.Context, out output.Streams) error {
	return governedRows.getAll(ctx, out, &c.apiFlags, governedPath, nil)
}

// oneGovernedCmd is about one governed queue.
type oneGovernedCmd struct {
	apiFlags

	Name string `arg:"" help:"Name of the queue, without queue."`
}

func (c *oneGovernedCmd) path() string { return governedPath + "/" + apiclient.Segment(c.Name) }

// action returns an action on the queue.
func (c *oneGovernedCmd) action(method, path, done string, body []byte) action {
	return action{Request: apiclient.Request{Method: method, Path: c.path() + path, Body: body},
		did: fields{"name": c.Name, "done": done}, said: fmt.Sprintf("queue %q %s", c.Name, done)}
}

type (
	showGovernedCmd struct{ oneGovernedCmd }
	setGovernedCmd  struct {
		oneGovernedCmd
		reasonFlag

		Key        string           `placeholder:"PATH" help:"Where the key of a job is in it, such as args.0.customer_id."`
		MaxWaiting int64            `placeholder:"N" help:"Refuse more jobs while so many wait."`
		Ahead      int64            `placeholder:"N" help:"Deliver at most so many jobs that have not ended."`
		Weights    map[string]int64 `placeholder:"KEY=N" help:"Turns of a key in a round, such as customer-42=3."`
	}
	pauseGovernedCmd struct {
		oneGovernedCmd
		reasonFlag
	}
	forgetGovernedCmd struct {
		oneGovernedCmd
		reasonFlag
		output.Confirm

		Layer string `placeholder:"LAYER" help:"Only what this layer defines: code, file or operator."`
	}
)

// Run prints one governed queue.
func (c *showGovernedCmd) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, c.path(), nil)
}

// Run sets the operator's layer.
func (c *setGovernedCmd) Run(ctx context.Context, out output.Streams) error {
	layer, err := json.Marshal(wire.GovernedQueue{Key: c.Key, MaxWaiting: c.MaxWaiting, Ahead: c.Ahead, Weights: c.Weights})
	if err == nil {
		_, err = wire.ParseGoverned(layer)
	}
	if err != nil {
		return usage.Fault(err)
	}
	a := c.action(http.MethodPut, "", "governed", layer)
	if c.Reason != "" {
		a.Header = http.Header{"X-Reason": {c.Reason}}
	}
	return c.act(ctx, out, a)
}

// Run does what the command is called.
func (c *pauseGovernedCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	verb := k.Selected().Name
	return c.act(ctx, out, c.action(http.MethodPut, "/"+verb, verb+"d", c.body()))
}

// Run ends that the queue is governed.
func (c *forgetGovernedCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Govern queue %q no longer? The jobs that wait are delivered without limits.", c.Name); err != nil {
		return err
	}
	a := c.action(http.MethodDelete, "", "no longer governed", c.body())
	if c.Layer != "" {
		a.Query = url.Values{"layer": {c.Layer}}
	}
	return c.act(ctx, out, a)
}
