package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type governedCmd struct {
	List   listGovernedCmd            `cmd:"" default:"withargs" aliases:"ls" help:"List governed queues."`
	Show   showOneCmd[governedKind]   `cmd:"" aliases:"get" help:"Show one governed queue, and who defined what."`
	Set    setGovernedCmd             `cmd:"" help:"Govern a queue: its jobs wait at Millrace until limits let them begin."`
	Forget deleteOneCmd[governedKind] `cmd:"" aliases:"rm,delete" help:"Govern a queue no longer. Jobs that wait are delivered."`
	Pause  pauseOneCmd[governedKind]  `cmd:"" help:"Pause a governed queue: no job of it is delivered."`
	Resume pauseOneCmd[governedKind]  `cmd:"" help:"Resume a paused governed queue."`
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

type governedKind struct{}

func (governedKind) says() kindWords {
	return kindWords{governedPath, "queue", "Govern queue %q no longer? The jobs that wait are delivered without limits.", "no longer governed"}
}

type setGovernedCmd struct {
	oneOf[governedKind]
	dryRunFlag
	reasonFlag

	Key        string           `placeholder:"PATH" help:"Where the key of a job is in it, such as args.0.customer_id."`
	MaxWaiting int64            `placeholder:"N" help:"Refuse more jobs while so many wait."`
	Ahead      int64            `placeholder:"N" help:"Deliver at most so many jobs that have not ended."`
	Weights    map[string]int64 `placeholder:"KEY=N" help:"Turns of a key in a round, such as customer-42=3."`
}

// Run sets the operator's layer, or says what that would mean.
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
	if c.DryRun {
		a.Query = url.Values{"dry_run": {"true"}}
		return c.printFacts(ctx, out, a.Request)
	}
	return c.act(ctx, out, a)
}
