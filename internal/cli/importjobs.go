package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/fieldmap"
	"github.com/millrace-jobs/millrace/internal/cli/importer"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

type importCmd struct {
	apiFlags
	dryRunFlag

	File string `arg:"" optional:"" default:"-" help:"File with a JSON object a line, or - for standard input (${default})."`

	Name     string        `required:"" placeholder:"NAME" help:"Name of the import: 1 to 64 letters, digits, dots, hyphens and underscores. A job with the same jid is entered once in 24 hours under the same name."`
	Map      string        `placeholder:"FILE" help:"YAML file that maps the objects of another system to jobs. Without it, the lines are jobs, or records that millrace export printed."`
	Rate     float64       `placeholder:"N" help:"Maximum jobs per second."`
	Resume   string        `placeholder:"FILE" help:"Note in this file how far the import has come, and continue there."`
	Rejected string        `placeholder:"FILE" help:"Write the lines that are refused to this file, with line numbers and reasons. Without --resume an existing file is replaced."`
	Timeout  time.Duration `default:"2m" placeholder:"DURATION" help:"How long to try a job while no sidecar leads or the broker is away (${default})."`
}

// Run imports a file, or says what that would do.
func (c *importCmd) Run(ctx context.Context, out output.Streams) error {
	input, err := c.open(out)
	if err != nil {
		return err
	}
	defer input.Close()
	cfg, err := c.config(input)
	if err != nil {
		return err
	}
	if c.DryRun {
		plan, err := importer.DryRun(ctx, cfg)
		if err != nil {
			return err
		}
		return c.show(out, plan)
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	cfg.OnBatch = follow(following, out)
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	cfg.Waiting = waitingIn(api)
	done, err := importer.Run(ctx, cfg)
	stop()
	return c.report(ctx, out, &done, err)
}

// open opens the input, which must not be a file that the command writes.
func (c *importCmd) open(out output.Streams) (io.ReadCloser, error) {
	if !importer.NameForm.MatchString(c.Name) {
		return nil, usage.Errorf("--name %q: use 1 to 64 letters, digits, dots, hyphens and underscores", c.Name)
	}
	if c.Rate < 0 {
		return nil, usage.Errorf("--rate must be above 0")
	}
	if c.File == "-" {
		return io.NopCloser(out.In), nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, usage.Fault(err)
	}
	if err := c.keepsInput(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (c *importCmd) keepsInput(file *os.File) error {
	input, err := file.Stat()
	if err != nil {
		return err
	}
	if input.IsDir() {
		return usage.Errorf("%s is a folder: name a file", c.File)
	}
	for flag, path := range map[string]string{"--resume": c.Resume, "--rejected": c.Rejected} {
		if other, err := os.Stat(path); path != "" && err == nil && os.SameFile(input, other) {
			return usage.Errorf("%s is the file that is imported, and would be overwritten: name another file", flag)
		}
	}
	return nil
}

func (c *importCmd) config(input io.Reader) (importer.Config, error) {
	cfg := importer.Config{
		Name: c.Name, Input: input, Rate: c.Rate, Resume: c.Resume, Rejected: c.Rejected, Patience: c.Timeout,
		Broker: broker.Config{AMQPURL: c.AMQPURL, Name: connect.Name + " import"},
	}
	if c.Map == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(c.Map)
	if err == nil {
		cfg.Fields, err = fieldmap.Parse(text)
	}
	return cfg, named("--map", usage.Fault(err))
}

// requestsAtOnce is how many lookups are made at the same time: each keeps its connection.
const requestsAtOnce = 2

// waitingIn returns a function that finds the retries and dead jobs with a jid.
func waitingIn(api *apiclient.Client) importer.Waiting {
	paths := map[string]string{wire.Retries: "/api/" + apiclient.Retries, wire.DeadJobs: "/api/" + apiclient.Dead}
	room := make(chan struct{}, requestsAtOnce)
	return func(ctx context.Context, stream, jid string) (records [][]byte, err error) {
		room <- struct{}{}
		defer func() { <-room }()
		items, err := api.Fetch(ctx, apiclient.Request{Path: paths[stream], Query: given("jid", jid)})
		if err != nil {
			return nil, err
		}
		gjson.ParseBytes(items).ForEach(func(_, item gjson.Result) bool {
			var record []byte
			record, _, err = importer.WithoutPlace([]byte(item.Raw))
			records = append(records, record)
			return err == nil
		})
		return records, err
	}
}

// follow returns a function that shows on a terminal how far an import has come.
func follow(ctx context.Context, out output.Streams) func(importer.Progress) {
	if !output.IsTerminal(out.Err) {
		return nil
	}
	var now atomic.Pointer[importer.Progress]
	now.Store(&importer.Progress{})
	go func() {
		_ = output.NewLive(out.Err).Follow(ctx, func(context.Context) string {
			p := now.Load()
			return fmt.Sprintf("%s read: %s entered, %d refused", wire.Counted(p.Lines, "line"), wire.Counted(p.Entered, "job"), p.Refused)
		})
	}()
	return func(p importer.Progress) { now.Store(&p) }
}

// report prints what an import has done, and says why it ended early or what was refused.
func (c *importCmd) report(ctx context.Context, out output.Streams, done *importer.Result, err error) error {
	if usage.Is(err) {
		return err
	}
	entered, refused := done.Entered-done.Before.Entered, done.Refused-done.Before.Refused
	if err != nil && entered+refused == 0 && ctx.Err() == nil {
		return err
	}
	changed := fields{"name": c.Name, "entered": entered, "refused": refused, "lines": done.Lines, "complete": err == nil}
	printed := c.Printer(out).Done(changed, "%s entered, %d refused", wire.Counted(entered, "job"), refused)
	if c.Rejected == "" {
		printed = errors.Join(printed, printReasons(out.Err, done.Reasons, refused))
	}
	switch {
	case printed != nil:
		return printed
	case ctx.Err() != nil:
		return errors.New("interrupted; " + c.again())
	case err != nil:
		return fmt.Errorf("%w; %s", err, c.again())
	}
	return c.refusedError(refused)
}

// again says how an import that ended early is continued.
func (c *importCmd) again() string {
	if c.Resume != "" {
		return "the same command continues with line " + c.nextLine()
	}
	return "the same command begins again, and doubles nothing"
}

func (c *importCmd) nextLine() string {
	done, err := importer.Load(c.Resume, c.Name)
	if err != nil {
		return "1"
	}
	return fmt.Sprint(done.Lines + 1)
}

func (c *importCmd) refusedError(n int64) error {
	switch {
	case n == 0:
		return nil
	case c.Rejected != "" && !c.DryRun:
		return fmt.Errorf("%s refused: %s has the reasons", were(n), c.Rejected)
	}
	return fmt.Errorf("%s refused", were(n))
}

func were(n int64) string {
	if n == 1 {
		return "1 line was"
	}
	return fmt.Sprintf("%d lines were", n)
}

func printReasons(w io.Writer, first []importer.Refusal, n int64) error {
	for i := range first {
		if _, err := fmt.Fprintf(w, "millrace: %v\n", &first[i]); err != nil {
			return err
		}
	}
	if more := n - int64(len(first)); more > 0 {
		_, err := fmt.Fprintf(w, "millrace: and %d more; --rejected FILE writes all of them to a file\n", more)
		return err
	}
	return nil
}

// show prints what an import would do.
func (c *importCmd) show(out output.Streams, plan *importer.Plan) error {
	p := c.Printer(out)
	if p.Structured() {
		text, err := encode(plan)
		if err == nil {
			err = p.Answer(text)
		}
		return errors.Join(err, c.refusedError(plan.Refused))
	}
	t := &output.Table{Columns: []output.Column{output.Plain("STATE"), output.Name("CLASS"), output.Name("QUEUE"), output.Plain("JOBS")}}
	for _, g := range plan.Groups {
		t.Add(string(g.State), g.Class, g.Queue, g.Jobs)
	}
	if plan.More > 0 {
		t.Add("", "other classes", "", plan.More)
	}
	err := p.List(t, wire.Counted(plan.Jobs, "job")+" would be entered, nothing was")
	for _, first := range plan.First {
		err = errors.Join(err, p.Note("line %d: %s", first.Line, first.Entered))
	}
	for _, unseen := range plan.Unseen {
		err = errors.Join(err, p.Note("no line has a value for %s", unseen))
	}
	return errors.Join(err, printReasons(out.Err, plan.Reasons, plan.Refused), c.refusedError(plan.Refused))
}
