package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// set is one of the lists of jobs that the API has.
type set struct {
	path    string // in the API
	one     string // what a member is called
	columns []output.Column
	cells   func(*item) []any
}

// Both retries and dead jobs show how many retries a job had; the retry that waits counts too.
var (
	failedColumns = []output.Column{output.ID("JID"), output.Name("CLASS"), output.Name("QUEUE"), output.Plain("RETRY"), output.Text("ERROR")}

	waitingColumns = []output.Column{output.ID("JID"), output.Name("CLASS"), output.Name("QUEUE"), output.Text("ARGS")}

	scheduledSet = set{"/api/scheduled-jobs", "scheduled job", append([]output.Column{output.Due("DUE")}, waitingColumns...), (*item).waiting}
	retriesSet   = set{"/api/retries", "retry", append([]output.Column{output.Due("DUE")}, failedColumns...), (*item).failed}
	gatedSet     = set{"/api/gated-jobs", "gated job", append([]output.Column{output.Due("SINCE")}, waitingColumns...), (*item).waiting}
	deadSet      = set{"/api/dead-jobs", "dead job", append([]output.Column{output.Due("DIED")}, failedColumns...), (*item).failed}
)

func (i *item) waiting() []any {
	return []any{i.time(), i.jid(), i.Millrace.Class, i.Millrace.Queue, string(i.Job.Args)}
}

func (i *item) failed() []any {
	return []any{i.time(), i.jid(), i.Millrace.Class, i.Millrace.Queue, i.Millrace.Attempt, i.error()}
}

type scheduledCmd struct {
	List    listCmd    `cmd:"" default:"withargs" aliases:"ls" help:"List scheduled jobs, the next one first."`
	Show    showCmd    `cmd:"" aliases:"get" help:"Show one scheduled job."`
	Trigger triggerCmd `cmd:"" help:"Send a job to its queue now."`
	Kill    killCmd    `cmd:"" help:"Move a job to the dead jobs."`
	Delete  deleteCmd  `cmd:"" aliases:"rm" help:"Delete a scheduled job."`
	Change  changeCmd  `cmd:"" help:"Change a job's time, queue, priority or arguments."`
	Undo    undoCmd    `cmd:"" help:"Undo the last delete, kill or change of a job."`
}

type retriesCmd struct {
	List   listCmd   `cmd:"" default:"withargs" aliases:"ls" help:"List retries, the next one first."`
	Show   showCmd   `cmd:"" aliases:"get" help:"Show one retry."`
	Retry  retryCmd  `cmd:"" help:"Send a job to its queue now."`
	Kill   killCmd   `cmd:"" help:"Move a job to the dead jobs."`
	Delete deleteCmd `cmd:"" aliases:"rm" help:"Delete a retry."`
	Change changeCmd `cmd:"" help:"Change a job's time, queue, priority or arguments."`
	Undo   undoCmd   `cmd:"" help:"Undo the last delete, kill or change of a job."`
}

type gatedCmd struct {
	List   listCmd   `cmd:"" default:"withargs" aliases:"ls" help:"List gated jobs, the oldest first."`
	Show   showCmd   `cmd:"" aliases:"get" help:"Show one gated job."`
	Kill   killCmd   `cmd:"" help:"Move a job to the dead jobs."`
	Delete deleteCmd `cmd:"" aliases:"rm" help:"Delete a gated job."`
	Change changeCmd `cmd:"" help:"Change a job's queue, priority or arguments."`
	Undo   undoCmd   `cmd:"" help:"Undo the last delete, kill or change of a job."`
}

type deadCmd struct {
	List   listCmd   `cmd:"" default:"withargs" aliases:"ls" help:"List dead jobs, the newest first."`
	Show   showCmd   `cmd:"" aliases:"get" help:"Show one dead job."`
	Retry  retryCmd  `cmd:"" help:"Send a dead job back to its queue."`
	Delete deleteCmd `cmd:"" aliases:"rm" help:"Delete a dead job."`
	Change changeCmd `cmd:"" help:"Change a job's queue, priority or arguments."`
	Undo   undoCmd   `cmd:"" help:"Undo the last delete or change of a job."`
}

// The parent command tells its subcommands which set they are about.

func (*scheduledCmd) AfterApply(k *kong.Context) error { k.Bind(scheduledSet); return nil }
func (*retriesCmd) AfterApply(k *kong.Context) error   { k.Bind(retriesSet); return nil }
func (*gatedCmd) AfterApply(k *kong.Context) error     { k.Bind(gatedSet); return nil }
func (*deadCmd) AfterApply(k *kong.Context) error      { k.Bind(deadSet); return nil }

// filters choose what a list shows.
type filters struct {
	chosen

	Limit *int   `short:"n" placeholder:"N" help:"Maximum number of rows, up to 500 (25). With -o csv and -o ndjson any number, or all if it is not given."`
	Page  int    `default:"1" help:"Page of the list (${default})."`
	Next  string `placeholder:"NEXT" help:"Continue an earlier list, with the value that it ended with."`
}

const defaultLimit = 25

func (f *filters) query(now time.Time) (url.Values, error) {
	_, q, err := f.filter(now)
	if err != nil {
		return nil, err
	}
	limit := defaultLimit
	if f.Limit != nil {
		limit = *f.Limit
	}
	q.Set("page", strconv.Itoa(f.Page))
	q.Set("page_size", strconv.Itoa(limit))
	setGiven(q, map[string]string{"next": f.Next})
	return q, nil
}

type listCmd struct {
	lookSettings
	filters
}

// Run lists a set: a table for people, the API's own answer for scripts, or all that is chosen as a file.
func (c *listCmd) Run(ctx context.Context, out output.Streams, s set) error {
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if c.Output == output.FormCSV || c.Output == output.FormNDJSON {
		return c.export(ctx, out, s, query)
	}
	return look(ctx, out, &c.lookSettings, s.path, query, func(p *output.Printer, l *page) error { return l.print(p, s) })
}

// export writes the records that are chosen as they come: all of them may be more than memory holds.
func (c *listCmd) export(ctx context.Context, out output.Streams, s set, query url.Values) error {
	if c.Page != 1 {
		return usage.Errorf("-o %s has no pages: leave out --page, or set --limit", c.Output)
	}
	query.Del("page")
	query.Del("page_size")
	query.Set("format", c.Output)
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	file, err := api.Stream(ctx, apiclient.Request{Path: s.path, Query: query})
	if err != nil {
		return err
	}
	defer file.Close()
	switch {
	case c.Limit == nil:
		_, err = io.Copy(out.Out, file)
	case c.Output == output.FormCSV:
		err = copyRecords(out.Out, file, *c.Limit)
	default:
		err = copyLines(out.Out, file, *c.Limit)
	}
	if err != nil {
		return fmt.Errorf("the list is incomplete: %w", err)
	}
	return nil
}

// copyRecords copies the first line of a CSV file and so many records.
func copyRecords(to io.Writer, from io.Reader, limit int) error {
	r, w := csv.NewReader(from), csv.NewWriter(to)
	w.UseCRLF = true // as the API does
	for range limit + 1 {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func copyLines(to io.Writer, from io.Reader, limit int) error {
	r := bufio.NewReader(from)
	for range limit {
		line, err := r.ReadBytes('\n')
		if _, failed := to.Write(line); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oneCmd is about one member of a set.
type oneCmd struct {
	lookSettings
	JID    string `arg:"" name:"jid" help:"The job's id."`
	Offset int64  `default:"-1" placeholder:"OFFSET" help:"Which one, if several have this id: its offset in the stream."`
}

// actCmd does something to one member of a set.
type actCmd struct {
	oneCmd
	Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

func (c *oneCmd) query() url.Values {
	if c.Offset < 0 {
		return nil
	}
	return url.Values{"offset": {strconv.FormatInt(c.Offset, 10)}}
}

// act calls the API on the one job. action is empty for what a method alone says.
func (c *actCmd) act(ctx context.Context, out output.Streams, s set, method, action, done string) error {
	path := s.path + "/" + apiclient.Segment(c.JID)
	if action != "" {
		path += "/" + action
	}
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: method, Path: path, Query: c.query(), Body: reasonBody(c.Reason)}); err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	return c.did(out, s, done)
}

// did reports what was done to the job.
func (c *oneCmd) did(out output.Streams, s set, done string) error {
	return c.Printer(out).Done(output.Fields{"jid": c.JID, "set": s.path[len("/api/"):], "done": done}, "%s %s: %s", s.one, c.JID, done)
}

// reasonBody is the body of an action; none where no reason is given.
func reasonBody(reason string) []byte {
	if reason == "" {
		return nil
	}
	body, _ := json.Marshal(map[string]string{"reason": reason}) // a string always has a form
	return body
}

type showCmd struct{ oneCmd }

// Run prints one job.
func (c *showCmd) Run(ctx context.Context, out output.Streams, s set) error {
	if err := c.lookAt(ctx, out, s.path+"/"+apiclient.Segment(c.JID), c.query()); err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	return nil
}

type triggerCmd struct{ actCmd }

// Run fires a scheduled job before it is due.
func (c *triggerCmd) Run(ctx context.Context, out output.Streams, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "trigger", sentToQueue)
}

type retryCmd struct{ actCmd }

// Run fires a retry before it is due, or a dead job again.
func (c *retryCmd) Run(ctx context.Context, out output.Streams, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "retry", sentToQueue)
}

type killCmd struct {
	actCmd
	output.Confirm
}

// Run buries a job that has not run yet.
func (c *killCmd) Run(ctx context.Context, out output.Streams, s set) error {
	if err := c.Ask(out, "Move %s %s to the dead jobs?", s.one, c.JID); err != nil {
		return err
	}
	return c.act(ctx, out, s, http.MethodPost, "kill", "moved to the dead jobs")
}

type deleteCmd struct {
	actCmd
	output.Confirm
}

// Run deletes a job.
func (c *deleteCmd) Run(ctx context.Context, out output.Streams, s set) error {
	if err := c.Ask(out, "Delete %s %s?", s.one, c.JID); err != nil {
		return err
	}
	return c.act(ctx, out, s, http.MethodDelete, "", "deleted")
}
