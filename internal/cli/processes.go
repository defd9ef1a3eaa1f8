package cli

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type processesCmd struct {
	List  listProcessesCmd `cmd:"" default:"withargs" aliases:"ls" help:"List worker processes."`
	Show  showProcessCmd   `cmd:"" aliases:"get" help:"Show one process, with the jobs that it runs."`
	Quiet processActionCmd `cmd:"" help:"Ask a process to take no more jobs."`
	Stop  processActionCmd `cmd:"" help:"Ask a process to finish its jobs and end."`
}

const processesPath = "/api/processes"

func processCells(p *answer.Process) []any {
	silent := time.Duration(p.Silent * float64(time.Second)).Round(time.Second)
	return []any{p.Identity, p.State, silent.String() + " ago", fmt.Sprintf("%d/%d", p.Busy, p.Concurrency),
		strconv.FormatInt(p.RSSKB/1024, 10) + " MB", p.Version, strings.Join(p.Queues, " ")}
}

var processRows = rows[answer.Process]{[]output.Column{output.Name("PROCESS"), output.State("STATE"), output.Plain("HEARD"), output.Plain("BUSY"),
	output.Plain("MEMORY"), output.Plain("VERSION"), output.Text("QUEUES")}, processCells}

type listProcessesCmd struct {
	apiFlags

	State string `placeholder:"STATE" enum:",live,quiet,stopping,lost" default:"" help:"Only processes in this state: live, quiet, stopping or lost."`
	Queue string `short:"q" placeholder:"QUEUE" help:"Only processes that consume this queue."`
	pageFlags
}

// Run lists worker processes.
func (c *listProcessesCmd) Run(ctx context.Context, out output.Streams) error {
	return processRows.getPage(ctx, out, &c.apiFlags, &c.pageFlags, processesPath, given("state", c.State, "queue", c.Queue))
}

type showProcessCmd struct {
	apiFlags

	Identity string `arg:"" help:"The process's identity: host:pid or host:pid:tag."`
}

// Run prints one process.
func (c *showProcessCmd) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, processesPath+"/"+apiclient.Segment(c.Identity), nil)
}

type processActionCmd struct {
	apiFlags
	output.Confirm

	Identity string `arg:"" help:"The process's identity: host:pid or host:pid:tag. '*' means all processes."`
	reasonFlag
}

// everyProcess stands for all processes.
const everyProcess = "*"

// Run asks a process to do what the command is called.
func (c *processActionCmd) Run(ctx context.Context, out output.Streams, k *kong.Context) error {
	verb := k.Selected().Name
	what := map[string]string{"quiet": "take no more jobs", "stop": "stop"}[verb]
	about := fmt.Sprintf("process %q", c.Identity)
	if c.Identity == everyProcess {
		o, err := c.APIClient().Overview(ctx)
		if err != nil {
			return err
		}
		about = fmt.Sprintf("all processes (%d)", o.Processes.Running)
		if err := c.Ask(out, "Ask %s to %s?", about, what); err != nil {
			return err
		}
	}
	return c.act(ctx, out, action{
		Request: apiclient.Request{Method: http.MethodPut, Path: processesPath + "/" + apiclient.Segment(c.Identity) + "/" + verb, Body: c.body()},
		did:     fields{"process": c.Identity, "asked": verb}, said: "asked " + about + " to " + what,
	})
}
