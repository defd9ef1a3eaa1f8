package cli

import (
	"context"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type whoamiCmd struct{ apiFlags }

// whoami is the user that asks.
type whoami struct {
	Name          string `json:"name"`
	Role          string `json:"role"`
	Via           string `json:"via"`
	VHost         string `json:"vhost"`
	MayAct        bool   `json:"may_act"`
	MayAdminister bool   `json:"may_administer"`
	ReadOnly      bool   `json:"read_only"`
	HidesArgs     bool   `json:"hides_args"`
}

// may returns what the user may do.
func (a *whoami) may() string {
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

var whoamiRows = rows[whoami]{[]output.Column{output.Name("NAME"), output.Plain("ROLE"), output.Fact("MAY"), output.Name("VIRTUAL HOST"), output.Plain("SIGNED IN")},
	func(a *whoami) []any { return []any{a.Name, a.Role, a.may(), a.VHost, a.Via} }}

// Run shows the user that asks.
func (c *whoamiCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, "/api/whoami", nil, func(p *output.Printer, a *whoami) error {
		return p.Table(whoamiRows.table([]whoami{*a}))
	})
}
