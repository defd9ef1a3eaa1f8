package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// set is one of the lists of jobs that the API has.
type set struct {
	path    string // in the API
	one     string // what a member is called
	columns []column
}

var (
	scheduledSet = set{"/api/scheduled-jobs", "scheduled job", []column{colDue, colJID, colClass, colQueue, colArgs}}
	retriesSet   = set{"/api/retries", "retry", []column{colDue, colJID, colClass, colQueue, colAttempt, colError}}
	deadSet      = set{"/api/dead-jobs", "dead job", []column{colDied, colJID, colClass, colQueue, colAttempt, colError}}
)

type scheduledCmd struct {
	List    listCmd    `cmd:"" default:"withargs" help:"List them, the next one first."`
	Show    showCmd    `cmd:"" help:"Show one, as it was published."`
	Trigger triggerCmd `cmd:"" help:"Run one now."`
	Kill    killCmd    `cmd:"" help:"Make one a dead job."`
	Delete  deleteCmd  `cmd:"" help:"Forget one."`
	Change  changeCmd  `cmd:"" help:"Change the time, queue, priority or arguments of one."`
	Undo    undoCmd    `cmd:"" help:"Take back what was done to one last: delete, kill or change."`
}

type retriesCmd struct {
	List   listCmd   `cmd:"" default:"withargs" help:"List them, the next one first."`
	Show   showCmd   `cmd:"" help:"Show one, as it was published."`
	Retry  retryCmd  `cmd:"" help:"Run one now."`
	Kill   killCmd   `cmd:"" help:"Make one a dead job."`
	Delete deleteCmd `cmd:"" help:"Forget one."`
	Change changeCmd `cmd:"" help:"Change one: its time, queue, priority or arguments."`
	Undo   undoCmd   `cmd:"" help:"Take back what was done to one last."`
}

type deadCmd struct {
	List   listCmd   `cmd:"" default:"withargs" help:"List them, the newest first."`
	Show   showCmd   `cmd:"" help:"Show one, as it was published."`
	Retry  retryCmd  `cmd:"" help:"Put one back into its queue."`
	Delete deleteCmd `cmd:"" help:"Forget one."`
	Change changeCmd `cmd:"" help:"Change one: its time, queue, priority or arguments."`
	Undo   undoCmd   `cmd:"" help:"Take back what was done to one last."`
}

// The parent command tells its subcommands which set they are about.

func (*scheduledCmd) AfterApply(k *kong.Context) error { k.Bind(scheduledSet); return nil }
func (*retriesCmd) AfterApply(k *kong.Context) error   { k.Bind(retriesSet); return nil }
func (*deadCmd) AfterApply(k *kong.Context) error      { k.Bind(deadSet); return nil }

// filters choose what a list shows.
type filters struct {
	chosen

	Limit int    `default:"25" help:"How many at most, up to 500."`
	Page  int    `default:"1" help:"Which page of them."`
	Next  string `placeholder:"NEXT" help:"Go on where an earlier list ended."`
}

func (f *filters) query(now time.Time) (url.Values, error) {
	_, q, err := f.filter(now)
	if err != nil {
		return nil, err
	}
	q.Set("page", strconv.Itoa(f.Page))
	q.Set("page_size", strconv.Itoa(f.Limit))
	setGiven(q, map[string]string{"next": f.Next})
	return q, nil
}

type listCmd struct {
	lookSettings
	filters

	Format string `placeholder:"FORMAT" enum:",csv,ndjson" default:"" help:"Write all that are chosen, as csv or ndjson."`
}

// Run lists a set: a table for people, the API's own answer for scripts, a file for whoever takes it elsewhere.
func (c *listCmd) Run(ctx context.Context, out output, s set) error {
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if c.Format != "" {
		return c.export(ctx, out, s, query)
	}
	return look(ctx, out, &c.lookSettings, s.path, query, func(w io.Writer, p *page) error { return p.print(w, s, time.Now()) })
}

// export writes what is chosen as it comes: it may be more than memory holds.
func (c *listCmd) export(ctx context.Context, out output, s set, query url.Values) error {
	query.Del("page")
	query.Del("page_size")
	query.Set("format", c.Format)
	api := c.client()
	defer api.http.CloseIdleConnections()
	file, err := api.stream(ctx, s.path, query)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err = io.Copy(out.Out, file); err != nil {
		return fmt.Errorf("the list is not whole: %w", err)
	}
	return nil
}

// oneCmd is about one member of a set.
type oneCmd struct {
	clientSettings
	JID    string `arg:"" name:"jid" help:"The job's id."`
	Offset int64  `default:"-1" placeholder:"OFFSET" help:"Which one, if several have this id: its offset in the stream."`
}

// actCmd does something to one member of a set.
type actCmd struct {
	oneCmd
	Reason string `placeholder:"TEXT" help:"Why; the journal keeps it."`
}

func (c *oneCmd) query() url.Values {
	if c.Offset < 0 {
		return nil
	}
	return url.Values{"offset": {strconv.FormatInt(c.Offset, 10)}}
}

// act calls the API on the one job. action is empty for what a method alone says.
func (c *actCmd) act(ctx context.Context, out output, s set, method, action, done string) error {
	path := s.path + "/" + segment(c.JID)
	if action != "" {
		path += "/" + action
	}
	if _, err := c.client().do(ctx, method, path, c.query(), reasonBody(c.Reason)); err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	_, err := fmt.Fprintf(out.Out, "%s %s: %s\n", s.one, c.JID, done)
	return err
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
func (c *showCmd) Run(ctx context.Context, out output, s set) error {
	body, err := c.client().do(ctx, http.MethodGet, s.path+"/"+segment(c.JID), c.query(), nil)
	if err != nil {
		return fmt.Errorf("%s %s: %w", s.one, c.JID, err)
	}
	return printJSON(out.Out, body)
}

type triggerCmd struct{ actCmd }

// Run fires a scheduled job before it is due.
func (c *triggerCmd) Run(ctx context.Context, out output, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "trigger", "sent to its queue")
}

type retryCmd struct{ actCmd }

// Run fires a retry before it is due, or a dead job again.
func (c *retryCmd) Run(ctx context.Context, out output, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "retry", "sent to its queue")
}

type killCmd struct{ actCmd }

// Run buries a job that has not run yet.
func (c *killCmd) Run(ctx context.Context, out output, s set) error {
	return c.act(ctx, out, s, http.MethodPost, "kill", "is a dead job now")
}

type deleteCmd struct{ actCmd }

// Run deletes a job.
func (c *deleteCmd) Run(ctx context.Context, out output, s set) error {
	return c.act(ctx, out, s, http.MethodDelete, "", "deleted")
}
