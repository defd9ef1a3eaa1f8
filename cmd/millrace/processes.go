package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type processesCmd struct {
	List  listProcessesCmd `cmd:"" default:"withargs" aliases:"ls" help:"List worker processes."`
	Show  showProcessCmd   `cmd:"" aliases:"get" help:"Show one process, with the jobs that it runs."`
	Quiet quietProcessCmd  `cmd:"" help:"Ask a process to take no more jobs."`
	Stop  stopProcessCmd   `cmd:"" help:"Ask a process to finish its jobs and end."`
}

const processesPath = "/api/processes"

// processRow is a worker process, as the API gives it.
type processRow struct {
	Identity    string   `json:"identity"`
	State       string   `json:"state"`
	Version     string   `json:"version"`
	Silent      float64  `json:"silent_seconds"`
	Concurrency int64    `json:"concurrency"`
	Busy        int64    `json:"busy"`
	RSSKB       int64    `json:"rss_kb"`
	Queues      []string `json:"queues"`
}

var processColumns = []output.Column{output.Name("PROCESS"), output.State("STATE"), output.Plain("HEARD"), output.Plain("BUSY"), output.Plain("MEMORY"),
	output.Plain("VERSION"), output.Text("QUEUES")}

func (p *processRow) cells() []any {
	silent := time.Duration(p.Silent * float64(time.Second)).Round(time.Second)
	return []any{p.Identity, p.State, silent.String() + " ago", fmt.Sprintf("%d/%d", p.Busy, p.Concurrency),
		strconv.FormatInt(p.RSSKB/1024, 10) + " MB", p.Version, strings.Join(p.Queues, " ")}
}

type listProcessesCmd struct {
	lookSettings

	State string `placeholder:"STATE" enum:",live,quiet,stopping,lost" default:"" help:"Only processes in this state: live, quiet, stopping or lost."`
	Queue string `short:"q" placeholder:"QUEUE" help:"Only processes that consume this queue."`
	Limit int    `short:"n" default:"100" help:"Maximum number of rows, up to 500 (${default})."`
	Page  int64  `default:"1" help:"Page of the list (${default})."`
}

// Run lists worker processes.
func (c *listProcessesCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"state": c.State, "queue": c.Queue})
	return look(ctx, out, &c.lookSettings, processesPath, query, printPage(c.Page, processColumns, (*processRow).cells))
}

type showProcessCmd struct {
	lookSettings

	Identity string `arg:"" help:"The process's identity: host:pid:tag."`
}

// Run prints one process.
func (c *showProcessCmd) Run(ctx context.Context, out output.Streams) error {
	return c.lookAt(ctx, out, processesPath+"/"+apiclient.Segment(c.Identity), nil)
}

type controlProcessCmd struct {
	lookSettings
	output.Confirm

	Identity string `arg:"" help:"The process's identity: host:pid:tag. '*' means all processes."`
	Reason   string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

type (
	quietProcessCmd struct{ controlProcessCmd }
	stopProcessCmd  struct{ controlProcessCmd }
)

// everyProcess stands for all processes.
const everyProcess = "*"

// Run asks a process to take no more jobs.
func (c *quietProcessCmd) Run(ctx context.Context, out output.Streams) error {
	return c.ask(ctx, out, "quiet", "take no more jobs")
}

// Run asks a process to end.
func (c *stopProcessCmd) Run(ctx context.Context, out output.Streams) error {
	return c.ask(ctx, out, "stop", "stop")
}

func (c *controlProcessCmd) ask(ctx context.Context, out output.Streams, verb, what string) error {
	about := fmt.Sprintf("process %q", c.Identity)
	if c.Identity == everyProcess {
		running, err := c.running(ctx)
		if err != nil {
			return err
		}
		about = "all processes (" + strconv.FormatInt(running, 10) + ")"
		if err := c.Ask(out, "Ask %s to %s?", about, what); err != nil {
			return err
		}
	}
	path := processesPath + "/" + apiclient.Segment(c.Identity) + "/" + verb
	if _, err := c.APIClient().Do(ctx, apiclient.Request{Method: http.MethodPut, Path: path, Body: reasonBody(c.Reason)}); err != nil {
		return err
	}
	return c.Printer(out).Done(output.Fields{"process": c.Identity, "asked": verb}, "asked %s to %s", about, what)
}

// running is how many processes run.
func (c *controlProcessCmd) running(ctx context.Context) (int64, error) {
	o, err := c.APIClient().Overview(ctx)
	if err != nil {
		return 0, err
	}
	return o.Processes.Running, nil
}
