package cli

import (
	"context"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type whoamiCmd struct{ apiFlags }

// may returns what the user may do.
func may(a *answer.Whoami) string {
	text := "look"
	switch {
	case a.MayAdminister:
		text = "look, act, administer"
	case a.MayAct:
		text = "look, act"
	case a.ReadOnly:
		text = "look (this sidecar is read-only)"
	}
	if a.HidesArgs {
		text += "; some arguments are hidden"
	}
	return text
}

var whoamiRows = rows[answer.Whoami]{[]output.Column{output.Name("NAME"), output.Plain("ROLE"), output.Fact("MAY"), output.Name("VIRTUAL HOST"), output.Plain("SIGNED IN")},
	func(a *answer.Whoami) []any { return []any{a.Name, a.Role, may(a), a.VHost, a.Via} }}

// Run shows the user that asks.
func (c *whoamiCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, "/api/whoami", nil, func(p *output.Printer, a *answer.Whoami) error {
		return p.Table(whoamiRows.table([]answer.Whoami{*a}))
	})
}
