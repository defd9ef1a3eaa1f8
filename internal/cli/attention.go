package cli

import (
	"context"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

const attentionPath = "/api/attention"

type attentionCmd struct{ apiFlags }

var problemRows = rows[answer.Problem]{[]output.Column{output.State("SEVERITY"), output.Plain("KIND"), output.Name("SUBJECT"), output.Fact("TEXT")},
	func(i *answer.Problem) []any { return []any{i.Severity, i.Kind, i.Subject, i.Text} }}

// Run lists what needs attention.
func (c *attentionCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, attentionPath, nil, func(p *output.Printer, all *answer.Attention) error { return printProblems(p, all, "none") })
}

// printProblems prints the problems, or a line that says that there are none.
func printProblems(p *output.Printer, all *answer.Attention, none string) error {
	if err := p.Table(problemRows.table(all.Items)); err != nil || len(all.Items) > 0 {
		return err
	}
	return p.Note("%s", none)
}
