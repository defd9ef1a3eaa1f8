package main

import "context"

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
func (c *attentionCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, attentionPath, nil, func(p *printer, n *needs) error {
		if err := n.print(p); err != nil || len(n.Items) > 0 {
			return err
		}
		return p.say("none")
	})
}

func (n *needs) print(p *printer) error {
	columns := []column{{"SEVERITY", stateKind}, {"KIND", plainKind}, {"SUBJECT", nameKind}, {"TEXT", factKind}}
	return p.table(tableOf(columns, n.Items, func(i *need) []any { return []any{i.Severity, i.Kind, i.Subject, i.Text} }))
}
