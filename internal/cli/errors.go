package cli

import (
	"context"
	"fmt"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type errorsCmd struct {
	apiFlags
	timeRange

	Set   string `placeholder:"SET" enum:",retries,dead-jobs" default:"" help:"Only retries, or only dead-jobs."`
	Queue string `short:"q" placeholder:"QUEUE" help:"Only jobs of this queue."`
	Class string `placeholder:"CLASS" help:"Only jobs of this class."`
}

var errorRows = rows[answer.ErrorGroup]{[]output.Column{output.Plain("JOBS"), output.Plain("RETRIES"), output.Plain("DEAD"), output.Name("CLASS"), output.Text("ERROR"),
	output.Plain("FINGERPRINT"), output.ID("JID")}, func(g *answer.ErrorGroup) []any {
	return []any{g.Count, g.Retries, g.Dead, g.Class, errorText(g.ErrorClass, g.Message), g.Fingerprint, g.JID}
}}

// endOfErrors says how many jobs failed, and what is left out.
func endOfErrors(g *answer.ErrorGroups) string {
	var failed int64
	for i := range g.Items {
		failed += g.Items[i].Count
	}
	text := "none"
	if failed > 0 {
		text = fmt.Sprintf("%s in %s", wire.Counted(failed, "job"), wire.Counted(int64(len(g.Items)), "group"))
	}
	if g.Unread > 0 {
		text += fmt.Sprintf("; %s too large to be searched", wire.Counted(g.Unread, "job"))
	}
	if !g.Complete {
		text += "; not all jobs could be read: try again, or filter by queue or class"
	}
	return text
}

// Run lists failures.
func (c *errorsCmd) Run(ctx context.Context, out output.Streams) error {
	query := given("set", c.Set, "queue", c.Queue, "class", c.Class)
	if err := c.set(query); err != nil {
		return err
	}
	return get(ctx, out, &c.apiFlags, "/api/errors", query, func(p *output.Printer, g *answer.ErrorGroups) error {
		return p.List(errorRows.table(g.Items), endOfErrors(g))
	})
}
