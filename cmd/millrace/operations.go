package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

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

// operationRow is an operation, as the API gives it.
type operationRow struct {
	ID        string  `json:"id"`
	Action    string  `json:"action"`
	Set       string  `json:"set"`
	State     string  `json:"state"`
	StartedAt float64 `json:"started_at"`
	Done      int64   `json:"done"`
	Failed    int64   `json:"failed"`
	Total     *int64  `json:"total"`
	Actor     string  `json:"actor"`
	Reason    string  `json:"reason"`
}

var operationColumns = []output.Column{output.Plain("ID"), output.Plain("ACTION"), output.Plain("SET"), output.State("STATE"), output.Time("BEGAN"),
	output.Plain("DONE"), output.Plain("FAILED"), output.Name("BY"), output.Text("REASON")}

func (o *operationRow) cells() []any {
	done := strconv.FormatInt(o.Done, 10)
	if o.Total != nil {
		done += "/" + strconv.FormatInt(*o.Total, 10)
	}
	return []any{o.ID, o.Action, o.Set, o.State, humantime.Unix(o.StartedAt), done, o.Failed, o.Actor, o.Reason}
}

type listOperationsCmd struct{ lookSettings }

// Run lists operations.
func (c *listOperationsCmd) Run(ctx context.Context, out output.Streams) error {
	return look(ctx, out, &c.lookSettings, operationsPath, nil, func(p *output.Printer, all *[]operationRow) error {
		if err := p.Table(output.TableOf(operationColumns, *all, (*operationRow).cells)); err != nil {
			return err
		}
		n := int64(len(*all))
		return p.Note("%s", summary(n, n, nil, 0))
	})
}

// oneOperationCmd is about one operation.
type oneOperationCmd struct {
	lookSettings

	ID string `arg:"" name:"id" help:"The operation's id."`
}

type (
	showOperationCmd   struct{ oneOperationCmd }
	cancelOperationCmd struct {
		oneOperationCmd

		Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
	}
	undoOperationCmd struct {
		oneOperationCmd

		Rate   float64 `placeholder:"N" help:"Maximum jobs per second."`
		Reason string  `placeholder:"TEXT" help:"Reason, kept in the journal."`
	}
)

func (c *oneOperationCmd) path() string { return operationsPath + "/" + apiclient.Segment(c.ID) }

// Run prints one operation.
func (c *showOperationCmd) Run(ctx context.Context, out output.Streams) error {
	return c.lookAt(ctx, out, c.path(), nil)
}

// Run cancels one.
func (c *cancelOperationCmd) Run(ctx context.Context, out output.Streams) error {
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodDelete, Path: c.path(), Body: reasonBody(c.Reason)}); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"id": c.ID, "done": "cancelled"}, "operation %s: cancelled", c.ID)
}

// Run begins to undo one.
func (c *undoOperationCmd) Run(ctx context.Context, out output.Streams) error {
	request := output.Fields{"reason": c.Reason}
	if c.Rate != 0 {
		request["rate"] = c.Rate
	}
	body, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: c.path() + "/undo", Body: request.JSON()})
	if err != nil {
		return err
	}
	var begun struct{ ID string }
	if err := json.Unmarshal(body, &begun); err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	return c.Printer(out).Done(output.Fields{"id": begun.ID, "undoes": c.ID, "done": "begun"},
		"operation %s undoes operation %s; follow it with millrace operations show %[1]s", begun.ID, c.ID)
}

type beginOperationCmd struct {
	lookSettings
	output.Confirm
	dryRunFlag
	chosen

	Action string  `arg:"" enum:"trigger,retry,kill,delete,change" help:"trigger, retry, kill, delete or change."`
	Set    string  `arg:"" enum:"scheduled-jobs,retries,dead-jobs,gated-jobs" help:"scheduled-jobs, retries, dead-jobs or gated-jobs."`
	At     string  `placeholder:"TIME" help:"New time, for change."`
	Rate   float64 `placeholder:"N" help:"Maximum jobs per second."`
	Over   string  `placeholder:"DURATION" help:"Spread the jobs over this time: 10m."`
	Reason string  `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

// dryRunFlag is that of a command that can say first what it would do.
type dryRunFlag struct {
	DryRun bool `help:"Only say what it would do."`
}

// chosen says which jobs are meant.
type chosen struct {
	Queue string `short:"q" help:"Only jobs of this queue." placeholder:"QUEUE"`
	Class string `help:"Only jobs of this class." placeholder:"CLASS"`
	Error string `help:"Only jobs that failed with an error of this class, or with this fingerprint." placeholder:"CLASS"`
	Tag   string `help:"Only jobs with this tag." placeholder:"TAG"`
	JID   string `name:"jid" help:"Only this job." placeholder:"JID"`
	Text  string `help:"Only records that contain this text." placeholder:"TEXT"`
	span
}

// filter is what is chosen, as an operation has it, and as a list does.
func (c *chosen) filter(now time.Time) (output.Fields, url.Values, error) {
	f, q := output.Fields{}, url.Values{"page": {"1"}, "page_size": {"1"}}
	for name, value := range map[string]string{"queue": c.Queue, "class": c.Class, "error": c.Error, "tag": c.Tag, "jid": c.JID, "text": c.Text} {
		if value != "" {
			f[name] = value
			q.Set(name, value)
		}
	}
	for name, value := range map[string]string{"from": c.From, "to": c.To} {
		if value == "" {
			continue
		}
		at, err := humantime.Parse(value, now)
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", name, err)
		}
		f[name] = float64(at.UnixMicro()) / 1e6
		q.Set(name, at.Format(time.RFC3339Nano))
	}
	return f, q, nil
}

// verbs are the actions as a question begins.
var verbs = map[string]string{"trigger": "Run now", "retry": "Retry", "kill": "Move to the dead jobs", "delete": "Delete", "change": "Change"}

// seen is what a list says of the jobs that are chosen.
type seen struct {
	Total    int64   `json:"total_count"`
	Filtered *int64  `json:"filtered_count"`
	AtLeast  *int64  `json:"filtered_count_at_least"`
	AsOf     int64   `json:"as_of"`
	Next     *string `json:"next"`
}

func (s *seen) count() (n int64, exact bool) {
	switch {
	case s.Filtered != nil:
		return *s.Filtered, true
	case s.AtLeast != nil:
		return *s.AtLeast, s.Next == nil
	}
	return s.Total, true
}

// Run looks at what is chosen, and begins the operation on exactly that.
func (c *beginOperationCmd) Run(ctx context.Context, out output.Streams) error {
	filter, query, err := c.filter(time.Now())
	if err != nil {
		return err
	}
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: "/api/" + c.Set, Query: query})
	if err != nil {
		return err
	}
	var s seen
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	n, exact := s.count()
	request, err := c.request(filter, s.AsOf, n, exact)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%d %s", n, strings.ReplaceAll(c.Set, "-", " "))
	if !exact {
		about = "at least " + about
	}
	if c.DryRun {
		return c.Printer(out).Done(output.Fields{"matching": n, "exact": exact, "set": c.Set}, "%s match", about)
	}
	if err := c.Ask(out, "%s %s?", verbs[c.Action], about); err != nil {
		return err
	}
	if body, err = c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPost, Path: operationsPath, Body: request.JSON()}); err != nil {
		return err
	}
	var begun struct{ ID string }
	if err := json.Unmarshal(body, &begun); err != nil {
		return fmt.Errorf("the sidecar's answer cannot be read: %w", err)
	}
	return c.Printer(out).Done(output.Fields{"id": begun.ID, "matching": n, "exact": exact, "set": c.Set, "done": "begun"},
		"operation %s begun on %s; follow it with millrace operations show %[1]s", begun.ID, about)
}

func (c *beginOperationCmd) request(filter output.Fields, asOf, n int64, exact bool) (output.Fields, error) {
	r := output.Fields{"action": c.Action, "set": c.Set, "filter": filter, "as_of": asOf, "reason": c.Reason}
	if exact {
		r["expected_count"] = n
	}
	if c.At != "" {
		at, err := humantime.Parse(c.At, time.Now())
		if err != nil {
			return nil, fmt.Errorf("--at: %w", err)
		}
		r["at"] = float64(at.UnixMicro()) / 1e6
	}
	switch {
	case c.Over != "" && c.Rate != 0:
		return nil, usage.Errorf("--over and --rate are mutually exclusive: set one of them")
	case c.Over != "":
		d, err := humantime.ParseDuration(c.Over)
		if err != nil {
			return nil, fmt.Errorf("--over: %w", err)
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
