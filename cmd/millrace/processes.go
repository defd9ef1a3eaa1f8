package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

type processesCmd struct {
	List  listProcessesCmd `cmd:"" default:"withargs" help:"List them."`
	Show  showProcessCmd   `cmd:"" help:"Show one, with the jobs that it runs."`
	Quiet quietProcessCmd  `cmd:"" help:"Tell one to take no more jobs."`
	Stop  stopProcessCmd   `cmd:"" help:"Tell one to end when its jobs have."`
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

func (p *processRow) cells() []string {
	silent := time.Duration(p.Silent * float64(time.Second)).Round(time.Second)
	return []string{p.Identity, p.State, silent.String() + " ago", fmt.Sprintf("%d/%d", p.Busy, p.Concurrency),
		strconv.FormatInt(p.RSSKB/1024, 10) + " MB", p.Version, short(strings.Join(p.Queues, " "))}
}

type listProcessesCmd struct {
	lookSettings

	State string `placeholder:"STATE" enum:",live,quiet,stopping,lost" default:"" help:"Only those that are live, quiet, stopping or lost."`
	Queue string `placeholder:"QUEUE" help:"Only those that consume it."`
	Limit int    `default:"100" help:"How many at most, up to 500."`
	Page  int64  `default:"1" help:"Which page of them."`
}

// Run lists worker processes.
func (c *listProcessesCmd) Run(ctx context.Context, out output) error {
	query := url.Values{"page": {strconv.FormatInt(c.Page, 10)}, "page_size": {strconv.Itoa(c.Limit)}}
	setGiven(query, map[string]string{"state": c.State, "queue": c.Queue})
	titles := []string{"PROCESS", "STATE", "HEARD", "BUSY", "MEMORY", "VERSION", "QUEUES"}
	return look(ctx, out, &c.lookSettings, processesPath, query, printPage(c.Page, titles, (*processRow).cells))
}

type showProcessCmd struct {
	clientSettings

	Identity string `arg:"" help:"What the process calls itself: host:pid:tag."`
}

// Run prints one process.
func (c *showProcessCmd) Run(ctx context.Context, out output) error {
	body, err := c.client().do(ctx, http.MethodGet, processesPath+"/"+segment(c.Identity), nil, nil)
	if err != nil {
		return err
	}
	return printJSON(out.Out, body)
}

type controlProcessCmd struct {
	clientSettings

	Identity string `arg:"" help:"What the process calls itself: host:pid:tag. An asterisk means all."`
	Reason   string `placeholder:"TEXT" help:"Why."`
}

type (
	quietProcessCmd struct{ controlProcessCmd }
	stopProcessCmd  struct{ controlProcessCmd }
)

// Run tells a process to take no more jobs.
func (c *quietProcessCmd) Run(ctx context.Context, out output) error {
	return c.tell(ctx, out, "quiet", "take no more jobs")
}

// Run tells a process to end.
func (c *stopProcessCmd) Run(ctx context.Context, out output) error {
	return c.tell(ctx, out, "stop", "stop")
}

func (c *controlProcessCmd) tell(ctx context.Context, out output, verb, what string) error {
	path := processesPath + "/" + segment(c.Identity) + "/" + verb
	if _, err := c.client().do(ctx, http.MethodPut, path, nil, reasonBody(c.Reason)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out.Out, "%s: told to %s\n", c.Identity, what)
	return err
}
