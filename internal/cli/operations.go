package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

type operationsCmd struct {
	List   listOperationsCmd  `cmd:"" default:"withargs" aliases:"ls" help:"List bulk operations: those that run, and the newest that ended."`
	Show   showOperationCmd   `cmd:"" aliases:"get" help:"Show one bulk operation."`
	Begin  beginOperationCmd  `cmd:"" help:"Start a bulk operation on all jobs that match a filter. Says how many those are and asks."`
	Cancel cancelOperationCmd `cmd:"" help:"Stop a bulk operation. What it has done stays done."`
	Undo   undoOperationCmd   `cmd:"" help:"Undo a bulk delete, kill or change."`
}

const operationsPath = "/api/operations"

func operationCells(o *answer.Operation) []any {
	done := strconv.FormatInt(o.Done, 10)
	if o.Total != nil {
		done += "/" + strconv.FormatInt(*o.Total, 10)
	}
	return []any{o.ID, o.Action, o.Set, o.State, humantime.Unix(o.StartedAt), done, o.Failed, o.Actor, o.Reason}
}

var operationRows = rows[answer.Operation]{[]output.Column{output.Plain("ID"), output.Plain("ACTION"), output.Plain("SET"), output.State("STATE"), output.Time("BEGAN"),
	output.Plain("DONE"), output.Plain("FAILED"), output.Name("BY"), output.Text("REASON")}, operationCells}

type listOperationsCmd struct{ apiFlags }

// Run lists operations.
func (c *listOperationsCmd) Run(ctx context.Context, out output.Streams) error {
	return operationRows.getAll(ctx, out, &c.apiFlags, operationsPath, nil)
}

// operationCmd is about one operation.
type operationCmd struct {
	apiFlags

	ID string `arg:"" name:"id" help:"The operation's id."`
}

func (c *operationCmd) path() string { return operationsPath + "/" + apiclient.Segment(c.ID) }

type (
	showOperationCmd   struct{ operationCmd }
	cancelOperationCmd struct {
		operationCmd
		reasonFlag
	}
	undoOperationCmd struct {
		operationCmd

		Rate float64 `placeholder:"N" help:"Maximum jobs per second."`
		reasonFlag
	}
)

// Run prints one operation.
func (c *showOperationCmd) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, c.path(), nil)
}

// Run cancels one operation.
func (c *cancelOperationCmd) Run(ctx context.Context, out output.Streams) error {
	return c.act(ctx, out, action{
		Request: apiclient.Request{Method: http.MethodDelete, Path: c.path(), Body: c.body()},
		did:     fields{"id": c.ID, "done": "cancelled"}, said: "operation " + c.ID + ": cancelled",
	})
}

// Run begins to undo one operation.
func (c *undoOperationCmd) Run(ctx context.Context, out output.Streams) error {
	request := fields{"reason": c.Reason}
	if c.Rate != 0 {
		request["rate"] = c.Rate
	}
	begun, err := send[answer.BegunOperation](ctx, &c.apiFlags, http.MethodPost, c.path()+"/undo", request.JSON())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"id": begun.ID, "undoes": c.ID, "done": "begun"},
		"operation %s undoes operation %s; follow it with millrace operations show %[1]s", begun.ID, c.ID)
}

// dryRunFlag is that of a command that can say first what it would do.
type dryRunFlag struct {
	DryRun bool `help:"Only say what it would do."`
}

type beginOperationCmd struct {
	apiFlags
	output.Confirm
	dryRunFlag
	filter

	Action string  `arg:"" enum:"trigger,retry,kill,delete,change" help:"trigger, retry, kill, delete or change."`
	Set    string  `arg:"" enum:"scheduled-jobs,retries,dead-jobs,gated-jobs" help:"scheduled-jobs, retries, dead-jobs or gated-jobs."`
	At     string  `placeholder:"TIME" help:"New time, for change."`
	Rate   float64 `placeholder:"N" help:"Maximum jobs per second."`
	Over   string  `placeholder:"DURATION" help:"Spread the jobs over this time: 10m."`
	reasonFlag
}

// verbs are the actions as a question begins.
var verbs = map[string]string{"trigger": "Run now", "retry": "Retry", "kill": "Move to the dead jobs", "delete": "Delete", "change": "Change"}

// matching returns how many jobs match the filter of a list, and whether that is exact.
func matching(e *answer.Envelope) (n int64, exact bool) {
	switch {
	case e.Filtered != nil:
		return *e.Filtered, true
	case e.AtLeast != nil:
		return *e.AtLeast, e.Next == nil
	}
	return e.Total, true
}

// Run counts the jobs that match, and begins the operation on exactly those.
func (c *beginOperationCmd) Run(ctx context.Context, out output.Streams) error {
	filter, query, err := c.filter.request(time.Now())
	if err != nil {
		return err
	}
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: "/api/" + c.Set, Query: query})
	if err != nil {
		return err
	}
	found, err := apiclient.DecodeStrict[answer.Envelope](body)
	if err != nil {
		return err
	}
	n, exact := matching(found)
	request, err := c.request(filter, *cmp.Or(found.AsOf, new(int64)), n, exact)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%d %s", n, strings.ReplaceAll(c.Set, "-", " "))
	if !exact {
		about = "at least " + about
	}
	if c.DryRun {
		return c.Printer(out).Done(fields{"matching": n, "exact": exact, "set": c.Set}, "%s match", about)
	}
	if err := c.Ask(out, "%s %s?", verbs[c.Action], about); err != nil {
		return err
	}
	begun, err := send[answer.BegunOperation](ctx, &c.apiFlags, http.MethodPost, operationsPath, request.JSON())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"id": begun.ID, "matching": n, "exact": exact, "set": c.Set, "done": "begun"},
		"operation %s begun on %s; follow it with millrace operations show %[1]s", begun.ID, about)
}

func (c *beginOperationCmd) request(filter fields, asOf, n int64, exact bool) (fields, error) {
	r := fields{"action": c.Action, "set": c.Set, "filter": filter, "as_of": asOf, "reason": c.Reason}
	if exact {
		r["expected_count"] = n
	}
	if c.At != "" {
		at, err := parseTime("at", c.At, time.Now())
		if err != nil {
			return nil, err
		}
		r["at"] = float64(at.UnixMicro()) / 1e6
	}
	switch {
	case c.Over != "" && c.Rate != 0:
		return nil, usage.Errorf("--over and --rate are mutually exclusive: set one of them")
	case c.Over != "":
		d, err := humantime.ParseDuration(c.Over)
		if err != nil {
			return nil, named("--over", err)
		}
		if !exact {
			return nil, usage.Errorf("--over needs the number of jobs, which takes too long to count here: set --rate")
		}
		if d > 0 && n > 0 {
			r["rate"] = float64(n) / d.Seconds()
		}
	case c.Rate != 0:
		r["rate"] = c.Rate
	}
	return r, nil
}
