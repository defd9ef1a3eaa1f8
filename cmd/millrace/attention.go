package main

import (
	"context"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

const attentionPath = "/api/attention"

type attentionCmd struct{ lookSettings }

// needs are what needs attention, as the API gives them.
type needs struct {
	Items []need `json:"items"`
}

type need struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
}

// Run shows what needs attention.
func (c *attentionCmd) Run(ctx context.Context, out output.Streams) error {
	return look(ctx, out, &c.lookSettings, attentionPath, nil, func(p *output.Printer, n *needs) error {
		if err := n.print(p); err != nil || len(n.Items) > 0 {
			return err
		}
		return p.Note("none")
	})
}

func (n *needs) print(p *output.Printer) error {
	columns := []output.Column{output.State("SEVERITY"), output.Plain("KIND"), output.Name("SUBJECT"), output.Fact("TEXT")}
	return p.Table(output.TableOf(columns, n.Items, func(i *need) []any { return []any{i.Severity, i.Kind, i.Subject, i.Text} }))
}
