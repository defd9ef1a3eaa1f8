package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

// Commands of every list of jobs. The set tags complete the texts of their help.
type (
	readCommands struct {
		List listCmd `cmd:"" default:"withargs" aliases:"ls" help:"List ${jobs} first."`
		Show showCmd `cmd:"" aliases:"get" help:"Show one ${one}."`
	}
	editCommands struct {
		Delete confirmedItemCmd `cmd:"" aliases:"rm" help:"Delete a ${one}."`
		Change changeCmd        `cmd:"" help:"Change a job's ${members}, priority or arguments."`
	}
)

type (
	scheduledCmd struct {
		readCommands `set:"jobs=scheduled jobs, the next one"`
		Trigger      itemActionCmd    `cmd:"" help:"Send a job to its queue now."`
		Kill         confirmedItemCmd `cmd:"" help:"Move a job to the dead jobs."`
		editCommands `set:"members=time, queue"`
		Undo         itemActionCmd `cmd:"" help:"Undo the last delete, kill or change of a job."`
	}
	retriesCmd struct {
		readCommands `set:"jobs=retries, the next one"`
		Retry        itemActionCmd    `cmd:"" help:"Send a job to its queue now."`
		Kill         confirmedItemCmd `cmd:"" help:"Move a job to the dead jobs."`
		editCommands `set:"members=time, queue"`
		Undo         itemActionCmd `cmd:"" help:"Undo the last delete, kill or change of a job."`
	}
	gatedCmd struct {
		readCommands `set:"jobs=gated jobs, the oldest"`
		Kill         confirmedItemCmd `cmd:"" help:"Move a job to the dead jobs."`
		editCommands `set:"members=queue"`
		Undo         itemActionCmd `cmd:"" help:"Undo the last delete, kill or change of a job."`
	}
	deadCmd struct {
		readCommands `set:"jobs=dead jobs, the newest"`
		Retry        itemActionCmd `cmd:"" help:"Send a dead job back to its queue."`
		editCommands `set:"members=queue"`
		Undo         itemActionCmd `cmd:"" help:"Undo the last delete or change of a job."`
	}
)

// list is one of the lists of jobs that the API has.
type list struct {
	name string // in the API
	one  string // what a job in it is called
	rows[answer.Entry]
}

func (l *list) path() string { return "/api/" + l.name }

// Retries and dead jobs show how many retries a job had. A retry that waits counts too.
var (
	failedColumns  = []output.Column{output.ID("JID"), output.Name("CLASS"), output.Name("QUEUE"), output.Plain("RETRY"), output.Text("ERROR")}
	waitingColumns = []output.Column{output.ID("JID"), output.Name("CLASS"), output.Name("QUEUE"), output.Text("ARGS")}
)

// lists are the lists by their commands.
var lists = map[string]list{
	"scheduled": {apiclient.Scheduled, "scheduled job", waiting("DUE")},
	"retries":   {apiclient.Retries, "retry", failed("DUE")},
	"gated":     {apiclient.Gated, "gated job", waiting("SINCE")},
	"dead":      {apiclient.Dead, "dead job", failed("DIED")},
}

func waiting(time string) rows[answer.Entry] {
	return rows[answer.Entry]{append([]output.Column{output.Due(time)}, waitingColumns...), func(e *answer.Entry) []any {
		return []any{dueAt(e), jidOf(e), e.Name(), e.Millrace.Queue, string(e.Job.Args)}
	}}
}

func failed(time string) rows[answer.Entry] {
	return rows[answer.Entry]{append([]output.Column{output.Due(time)}, failedColumns...), func(e *answer.Entry) []any {
		return []any{dueAt(e), jidOf(e), e.Name(), e.Millrace.Queue, e.Millrace.Attempt, lastError(e)}
	}}
}

// listOf returns the list that a command is about.
func listOf(k *kong.Context) *list {
	l := lists[k.Selected().Parent.Name]
	return &l
}

// dueAt returns when an entry is due, or since when it is where it is.
func dueAt(e *answer.Entry) time.Time { return humantime.Unix(e.Millrace.At) }

func jidOf(e *answer.Entry) string { return cmp.Or(e.JID, e.Job.JID) }

func lastError(e *answer.Entry) string { return errorText(e.ErrorClass, e.ErrorMessage) }

func errorText(class, message string) string {
	if class == "" || message == "" {
		return class + message
	}
	return class + ": " + message
}

// filter says which jobs of a list are meant.
type filter struct {
	Queue string `short:"q" help:"Only jobs of this queue." placeholder:"QUEUE"`
	Class string `help:"Only jobs of this class." placeholder:"CLASS"`
	Error string `help:"Only jobs that failed with an error of this class, or with this fingerprint." placeholder:"CLASS"`
	Tag   string `help:"Only jobs with this tag." placeholder:"TAG"`
	JID   string `name:"jid" help:"Only this job." placeholder:"JID"`
	Text  string `help:"Only records that contain this text." placeholder:"TEXT"`
	Args  string `help:"Only jobs with this value at this path in their arguments: 0.customer:42." placeholder:"PATH:VALUE"`
	timeRange
}

// request returns the filter as a bulk operation has it, and as a list does.
func (f *filter) request(now time.Time) (fields, url.Values, error) {
	if f.Args != "" {
		if _, _, err := wire.SplitArgs(f.Args); err != nil {
			return nil, nil, named("--args", usage.Fault(err))
		}
	}
	r, q := fields{}, url.Values{"page": {"1"}, "page_size": {"1"}}
	for name, value := range map[string]string{
		"queue": f.Queue, "class": f.Class, "error": f.Error, "tag": f.Tag, "jid": f.JID, "text": f.Text, "args": f.Args,
	} {
		if value != "" {
			r[name] = value
			q.Set(name, value)
		}
	}
	for name, value := range map[string]string{"from": f.From, "to": f.To} {
		if value == "" {
			continue
		}
		at, err := parseTime(name, value, now)
		if err != nil {
			return nil, nil, err
		}
		r[name] = float64(at.UnixMicro()) / 1e6
		q.Set(name, at.Format(time.RFC3339Nano))
	}
	return r, q, nil
}

type listCmd struct {
	apiFlags
	filter

	Limit *int   `short:"n" placeholder:"N" help:"Maximum number of rows, up to 500 (25). With -o csv and -o ndjson any number, or all if it is not given."`
	Page  int    `default:"1" help:"Page of the list (${default})."`
	Next  string `placeholder:"NEXT" help:"Continue an earlier list, with the value that it ended with."`
}

func (c *listCmd) query(now time.Time) (url.Values, error) {
	_, q, err := c.request(now)
	if err != nil {
		return nil, err
	}
	limit := 25
	if c.Limit != nil {
		limit = *c.Limit
	}
	q.Set("page", strconv.Itoa(c.Page))
	q.Set("page_size", strconv.Itoa(limit))
	if c.Next != "" {
		q.Set("next", c.Next)
	}
	return q, nil
}

// Run prints a page of a list or, as CSV and NDJSON, all jobs that match.
func (c *listCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	l := listOf(k)
	query, err := c.query(time.Now())
	if err != nil {
		return err
	}
	if c.Output == output.FormCSV || c.Output == output.FormNDJSON {
		return c.export(ctx, out, l, query)
	}
	return get(ctx, out, &c.apiFlags, l.path(), query, func(p *output.Printer, found *answer.Page[answer.Entry]) error {
		return p.List(l.table(found.Items), endOf(found))
	})
}

// endOf says how much of a list is shown, and how to see more. Where a search ended before it knew
// how many jobs match, the next page would look at the same jobs again.
func endOf(p *answer.Page[answer.Entry]) string {
	shown := int64(len(p.Items))
	switch {
	case p.Next == nil:
		return summary(shown, p.Total, p.Filtered, 0)
	case p.Filtered == nil:
		return fmt.Sprintf("%s; more with --next %s", summary(shown, p.Total, nil, 0), *p.Next)
	}
	return summary(shown, p.Total, p.Filtered, p.Page+1)
}

// itemCmd is about one job in a list.
type itemCmd struct {
	apiFlags
	JID    string `arg:"" name:"jid" help:"The job's id."`
	Offset int64  `default:"-1" placeholder:"OFFSET" help:"Which one, if several have this id: its offset in the stream."`
}

func (c *itemCmd) query() url.Values {
	if c.Offset < 0 {
		return nil
	}
	return url.Values{"offset": {strconv.FormatInt(c.Offset, 10)}}
}

func (c *itemCmd) path(l *list) string { return l.path() + "/" + apiclient.Segment(c.JID) }

func (c *itemCmd) about(l *list) string { return l.one + " " + c.JID }

// act makes a request about the job and reports that it is done.
func (c *itemCmd) act(ctx context.Context, out output.Streams, l *list, r apiclient.Request, done string) error {
	r.Query = c.query()
	did := fields{"jid": c.JID, "set": l.name, "done": done}
	return c.apiFlags.act(ctx, out, action{r, c.about(l), did, c.about(l) + ": " + done})
}

type showCmd struct{ itemCmd }

// Run prints one job.
func (c *showCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	l := listOf(k)
	return named(c.about(l), c.getFacts(ctx, out, c.path(l), c.query()))
}

// itemAction is what a command does to a job in a list.
type itemAction struct {
	method, path, done string
	question           string // empty if nothing is lost
}

const (
	sentToQueue = "sent to its queue"
	movedToDead = "moved to the dead jobs"
)

// itemActions are the actions by their commands.
var itemActions = map[string]itemAction{
	"trigger": {http.MethodPost, "/trigger", sentToQueue, ""},
	"retry":   {http.MethodPost, "/retry", sentToQueue, ""},
	"undo":    {http.MethodPost, "/undo", "restored", ""},
	"kill":    {http.MethodPost, "/kill", movedToDead, "Move %s to the dead jobs?"},
	"delete":  {http.MethodDelete, "", "deleted", "Delete %s?"},
}

// itemActionCmd does something to one job in a list.
type itemActionCmd struct {
	itemCmd
	reasonFlag
}

// Run does what the command is called.
func (c *itemActionCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	a, l := itemActions[k.Selected().Name], listOf(k)
	return c.act(ctx, out, l, apiclient.Request{Method: a.method, Path: c.path(l) + a.path, Body: c.body()}, a.done)
}

// confirmedItemCmd is an itemActionCmd that asks first.
type confirmedItemCmd struct {
	itemActionCmd
	output.Confirm
}

// Run asks, and then does what the command is called.
func (c *confirmedItemCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	if err := c.Ask(out, itemActions[k.Selected().Name].question, c.about(listOf(k))); err != nil {
		return err
	}
	return c.itemActionCmd.Run(ctx, out, k)
}

type changeCmd struct {
	itemActionCmd

	At       string `placeholder:"TIME" help:"New time, of scheduled jobs and retries."`
	Queue    string `placeholder:"QUEUE" help:"New queue."`
	Priority *int64 `placeholder:"N" help:"New priority, 0 to 10."`
	Args     string `placeholder:"JSON" help:"New arguments: a JSON array or object."`
}

// Run changes members of a job.
func (c *changeCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	changes := fields{"queue": c.Queue}
	if c.At != "" {
		at, err := parseTime("at", c.At, time.Now())
		if err != nil {
			return err
		}
		changes["at"] = float64(at.UnixMicro()) / 1e6
	}
	if c.Priority != nil {
		changes["priority"] = *c.Priority
	}
	if c.Args != "" {
		if !json.Valid([]byte(c.Args)) {
			return usage.Errorf("invalid --args %q: it is no JSON", c.Args)
		}
		changes["args"] = json.RawMessage(c.Args)
	}
	body := changes.JSON()
	if len(changes) == 0 {
		return usage.Errorf("nothing to change: set --at, --queue, --priority or --args")
	}
	header := http.Header{}
	if c.Reason != "" {
		header.Set("X-Reason", c.Reason)
	}
	l := listOf(k)
	return c.act(ctx, out, l, apiclient.Request{Method: http.MethodPatch, Path: c.path(l), Header: header, Body: body}, "changed")
}
