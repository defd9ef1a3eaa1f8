package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type limitsCmd struct {
	List   listLimitsCmd           `cmd:"" default:"withargs" aliases:"ls" help:"List limits."`
	Show   showOneCmd[limitKind]   `cmd:"" aliases:"get" help:"Show one limit, and who defined what."`
	Parts  limitPartsCmd           `cmd:"" help:"Show what one limit counts, such as the jobs of each key."`
	Slots  slotsCmd                `cmd:"" help:"List the slots that jobs hold."`
	Why    whyWaitsCmd             `cmd:"" help:"Show why a job waits."`
	Pause  pauseOneCmd[limitKind]  `cmd:"" help:"Pause a limit: the jobs that it is about do not begin."`
	Resume pauseOneCmd[limitKind]  `cmd:"" help:"Resume a paused limit."`
	Delete deleteOneCmd[limitKind] `cmd:"" aliases:"rm" help:"Delete a limit."`
	Free   freeSlotCmd             `cmd:"" help:"Free a slot whose job no worker runs any more."`
}

const limitsPath = "/api/limits"

// groupColumns are the columns of a queue, a class and a key.
var groupColumns = []output.Column{output.Name("QUEUE"), output.Name("CLASS"), output.Name("KEY")}

func groupCells(g wire.Group) []any { return []any{orDash(g.Queue), orDash(g.Class), orDash(g.Key)} }

func orDash(text string) any {
	if text == "" {
		return "-"
	}
	return text
}

// slotsOf returns how many slots are held, of how many.
func slotsOf(used int, of int64) string {
	if of == 0 {
		return strconv.Itoa(used)
	}
	return fmt.Sprintf("%d of %d", used, of)
}

var limitRows = rows[answer.Limit]{[]output.Column{output.Name("NAME"), output.State("STATE"), output.Plain("USED"), output.Plain("WAITING"), output.Plain("FULL")},
	func(l *answer.Limit) []any { return []any{l.Name, l.State, l.Used, l.Waiting, l.Full} }}

var slotRows = rows[answer.Slot]{append([]output.Column{output.ID("JID"), output.Time("SINCE")}, append(groupColumns, output.ID("SLOT"))...),
	func(s *answer.Slot) []any {
		return append([]any{s.JID, humantime.Unix(s.At)}, append(groupCells(s.Group), s.Slot)...)
	}}

type listLimitsCmd struct{ apiFlags }

// Run lists limits.
func (c *listLimitsCmd) Run(ctx context.Context, out output.Streams) error {
	return limitRows.getAll(ctx, out, &c.apiFlags, limitsPath, nil)
}

type limitKind struct{}

func (limitKind) says() kindWords {
	return kindWords{limitsPath, "limit", "Delete limit %q?", "deleted"}
}

type limitPartsCmd struct{ oneOf[limitKind] }

var partRows = rows[answer.LimitPart]{append(append([]output.Column{}, groupColumns...), output.Plain("USED"), output.Plain("WAITING")),
	func(p *answer.LimitPart) []any {
		return append(groupCells(p.Group), slotsOf(p.Used, p.Concurrency), p.Waiting)
	}}

// Run prints the parts of the jobs that a limit counts apart from each other.
func (c *limitPartsCmd) Run(ctx context.Context, out output.Streams) error {
	limit, err := apiclient.Get[answer.Limit](ctx, c.APIClient(), c.path(), nil)
	if err != nil {
		return err
	}
	return printPart(c.Printer(out), limit.Parts, partRows.table(limit.Parts))
}

type slotsCmd struct {
	apiFlags

	Limit string `placeholder:"NAME" help:"Only jobs that this limit is about."`
	Queue string `placeholder:"NAME" help:"Only jobs of this queue."`
	Class string `placeholder:"NAME" help:"Only jobs of this class."`
	Key   string `placeholder:"KEY" help:"Only jobs with this key."`
}

// Run lists slots.
func (c *slotsCmd) Run(ctx context.Context, out output.Streams) error {
	query := url.Values{}
	for name, value := range map[string]string{"limit": c.Limit, "queue": c.Queue, "class": c.Class, "key": c.Key} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return slotRows.getAll(ctx, out, &c.apiFlags, "/api/slots", query)
}

type whyWaitsCmd struct {
	apiFlags

	JID string `arg:"" name:"jid" help:"Id of the job."`
}

// Run prints why a job waits.
func (c *whyWaitsCmd) Run(ctx context.Context, out output.Streams) error {
	return c.getFacts(ctx, out, "/api/jobs/"+apiclient.Segment(c.JID)+"/limits", nil)
}

type freeSlotCmd struct {
	apiFlags
	reasonFlag
	output.Confirm

	Slot string `arg:"" help:"The slot, as millrace limits slots prints it."`
}

// Run frees the slot.
func (c *freeSlotCmd) Run(ctx context.Context, out output.Streams) error {
	if err := c.Ask(out, "Free slot %s? If its job still runs, one more than the limit will run.", c.Slot); err != nil {
		return err
	}
	return c.act(ctx, out, action{
		Request: apiclient.Request{Method: http.MethodPost, Path: "/api/slots/free", Body: fields{"slot": c.Slot, "reason": c.Reason}.JSON()},
		did:     fields{"slot": c.Slot, "done": "freed"}, said: fmt.Sprintf("slot %s freed", c.Slot)})
}
