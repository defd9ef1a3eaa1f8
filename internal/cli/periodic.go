package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type periodicCmd struct {
	List   listPeriodicCmd            `cmd:"" default:"withargs" aliases:"ls" help:"List periodic jobs."`
	Show   showOneCmd[periodicKind]   `cmd:"" aliases:"get" help:"Show one periodic job, and who defined what."`
	Next   nextTicksCmd               `cmd:"" help:"Show when a periodic job is due next."`
	Ticks  pastTicksCmd               `cmd:"" help:"Show the outcomes of the newest ticks of a periodic job."`
	Run    runPeriodicCmd             `cmd:"" help:"Enqueue the job of a periodic job now."`
	Skip   skipTickCmd                `cmd:"" help:"Skip the next tick of a periodic job, or another coming one."`
	Pause  pauseOneCmd[periodicKind]  `cmd:"" help:"Pause a periodic job: its ticks are skipped."`
	Resume pauseOneCmd[periodicKind]  `cmd:"" help:"Resume a paused periodic job."`
	Delete deleteOneCmd[periodicKind] `cmd:"" aliases:"rm" help:"Delete a periodic job."`
}

const periodicPath = "/api/periodic-jobs"

func tickTime(tick int64) any { return humantime.Unix(float64(tick)) }

func periodicCells(p *answer.PeriodicJob) []any {
	var next, last any = "-", "-"
	if len(p.Next) > 0 {
		next = tickTime(p.Next[0])
	}
	if p.Last != nil {
		last = tickTime(p.Last.Tick)
	}
	outcome := "-"
	if p.Last != nil {
		outcome = outcomeOf(p.Last)
	}
	return []any{p.Name, p.State, p.Schedule, p.Class, p.Queue, next, last, outcome}
}

// outcomeOf returns the outcome of a tick, in words.
func outcomeOf(t *wire.Tick) string {
	if t.Why == "" {
		return t.Outcome
	}
	return t.Outcome + ": " + t.Why
}

var periodicRows = rows[answer.PeriodicJob]{[]output.Column{output.Name("NAME"), output.State("STATE"), output.Plain("SCHEDULE"), output.Name("CLASS"), output.Name("QUEUE"),
	output.Time("NEXT"), output.Time("LAST"), output.Plain("OUTCOME")}, periodicCells}

type listPeriodicCmd struct{ apiFlags }

// Run lists periodic jobs.
func (c *listPeriodicCmd) Run(ctx context.Context, out output.Streams) error {
	return periodicRows.getAll(ctx, out, &c.apiFlags, periodicPath, nil)
}

type periodicKind struct{}

func (periodicKind) says() kindWords {
	return kindWords{periodicPath, "periodic job", "Delete periodic job %q?", "deleted"}
}

// onePeriodicCmd is about one periodic job.
type onePeriodicCmd struct{ oneOf[periodicKind] }

// get asks for the job, with its next n ticks.
func (c *onePeriodicCmd) get(ctx context.Context, n int) (*answer.PeriodicJob, error) {
	return apiclient.Get[answer.PeriodicJob](ctx, c.APIClient(), c.path(), url.Values{"next": {strconv.Itoa(n)}})
}

type (
	nextTicksCmd struct {
		onePeriodicCmd

		Count int `short:"n" default:"10" help:"How many, up to 100 (${default})."`
	}
	pastTicksCmd   struct{ onePeriodicCmd }
	runPeriodicCmd struct {
		onePeriodicCmd
		reasonFlag
	}
	skipTickCmd struct {
		onePeriodicCmd
		reasonFlag

		Tick string `placeholder:"TIME" help:"Which one, by its time (the next)."`
	}
)

var tickRows = rows[wire.Tick]{[]output.Column{output.Time("TICK"), output.Plain("OUTCOME"), output.Plain("COUNT"), output.Plain("LATE"), output.ID("JID"), output.Name("BY")},
	func(t *wire.Tick) []any {
		late := "-"
		if t.Outcome == wire.TickMade {
			late = time.Duration((t.At - float64(t.Tick)) * float64(time.Second)).Round(time.Millisecond).String()
		}
		return []any{tickTime(t.Tick), outcomeOf(t), max(1, t.Count), late, t.JID, t.Actor}
	}}

// Run prints the coming ticks.
func (c *nextTicksCmd) Run(ctx context.Context, out output.Streams) error {
	job, err := c.get(ctx, c.Count)
	if err != nil {
		return err
	}
	times := output.TableOf([]output.Column{output.Time("TICK")}, job.Next, func(t *int64) []any { return []any{tickTime(*t)} })
	return printPart(c.Printer(out), job.Next, times)
}

// Run prints the outcomes of the newest ticks.
func (c *pastTicksCmd) Run(ctx context.Context, out output.Streams) error {
	job, err := c.get(ctx, 0)
	if err != nil {
		return err
	}
	return printPart(c.Printer(out), job.Ticks, tickRows.table(job.Ticks))
}

// printPart prints a part of an answer, as a list of its own.
func printPart[T any](p *output.Printer, ticks []T, table *output.Table) error {
	if p.Structured() {
		body, err := json.Marshal(append([]T{}, ticks...))
		if err != nil {
			return err
		}
		return p.Answer(body)
	}
	n := int64(len(ticks))
	return p.List(table, summary(n, n, nil, 0))
}

// Run enqueues the job now.
func (c *runPeriodicCmd) Run(ctx context.Context, out output.Streams) error {
	did, err := send[answer.RunJob](ctx, &c.apiFlags, http.MethodPost, c.path()+"/run", c.body())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"name": c.Name, "done": "run", "jid": did.JID}, "periodic job %q enqueued: %s", c.Name, did.JID)
}

// Run skips a coming tick.
func (c *skipTickCmd) Run(ctx context.Context, out output.Streams) error {
	request := fields{"reason": c.Reason}
	if c.Tick != "" {
		at, err := parseTime("tick", c.Tick, time.Now())
		if err != nil {
			return err
		}
		request["tick"] = at.Unix()
	}
	did, err := send[answer.SkippedTick](ctx, &c.apiFlags, http.MethodPost, c.path()+"/skip", request.JSON())
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"name": c.Name, "done": "skipped", "tick": did.Tick},
		"periodic job %q skips %s", c.Name, humantime.Unix(float64(did.Tick)).Format(humantime.WithZone))
}

type defineCmd struct {
	apiFlags
	dryRunFlag
	reasonFlag

	Source string `placeholder:"NAME" help:"Who defines this, in place of the source in the file."`
	File   string `arg:"" optional:"" default:"-" help:"File with definitions as JSON, or - for standard input (${default})."`
}

// Run sets what the file defines.
func (c *defineCmd) Run(ctx context.Context, out output.Streams) error {
	d, err := c.read(out)
	if err != nil {
		return err
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	request := apiclient.Request{Method: http.MethodPost, Path: "/api/definitions", Body: body, Header: http.Header{}}
	if c.Reason != "" {
		request.Header.Set("X-Reason", c.Reason)
	}
	said := "defined"
	if c.DryRun {
		request.Query, said = url.Values{"dry_run": {"true"}}, "to be defined"
	}
	raw, err := c.APIClient().Do(ctx, request)
	if err != nil {
		return err
	}
	did, err := apiclient.DecodeStrict[wire.DefineResult](raw)
	if err != nil {
		return err
	}
	return c.Printer(out).Done(fields{"done": said, "made": did.Made, "changed": did.Changed, "forgotten": did.Forgotten, "unchanged": did.Unchanged},
		"%s: %d made, %d changed, %d forgotten, %d unchanged", said, len(did.Made), len(did.Changed), len(did.Forgotten), did.Unchanged)
}

// read reads the file. What a file defines takes precedence over code, unless it says otherwise.
func (c *defineCmd) read(out output.Streams) (*wire.Definitions, error) {
	text, err := readAll(out, c.File)
	if err != nil {
		return nil, usage.Fault(err)
	}
	d := &wire.Definitions{}
	if err := decodeDocument(text, d); err != nil {
		return nil, usage.Errorf("%s: %v", c.File, err)
	}
	if c.Source != "" {
		d.Source = c.Source
	}
	if d.Layer == "" {
		d.Layer = wire.LayerFile
	}
	if err := d.Check(); err != nil {
		return nil, usage.Errorf("%s: %v", c.File, err)
	}
	return d, nil
}
