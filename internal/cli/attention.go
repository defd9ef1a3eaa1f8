package cli

import (
	"context"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

const attentionPath = "/api/attention"

type attentionCmd struct{ apiFlags }

// problems are what needs attention.
type problems struct {
	Items []problem `json:"items"`
}

type problem struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
}

var problemRows = rows[problem]{[]output.Column{output.State("SEVERITY"), output.Plain("KIND"), output.Name("SUBJECT"), output.Fact("TEXT")},
	func(i *problem) []any { return []any{i.Severity, i.Kind, i.Subject, i.Text} }}

// Run lists what needs attention.
func (c *attentionCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, attentionPath, nil, func(p *output.Printer, all *problems) error { return all.print(p, "none") })
}

// print prints the problems, or a line that says that there are none.
func (all *problems) print(p *output.Printer, none string) error {
	if err := p.Table(problemRows.table(all.Items)); err != nil || len(all.Items) > 0 {
		return err
	}
	return p.Note("%s", none)
}
