package main

import (
	"context"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

type whoamiCmd struct{ lookSettings }

// whoami is who asks, as the API gives it.
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

// may is what the user may do.
func (a *whoami) may() string {
	said := "look"
	switch {
	case a.MayAdminister:
		said = "look, act, administer"
	case a.MayAct:
		said = "look, act"
	case a.ReadOnly:
		said = "look (this sidecar is read-only)"
	}
	if a.HidesArgs {
		said += "; some arguments are hidden"
	}
	return said
}

// Run shows who asks.
func (c *whoamiCmd) Run(ctx context.Context, out output.Streams) error {
	return look(ctx, out, &c.lookSettings, "/api/whoami", nil, func(p *output.Printer, a *whoami) error {
		columns := []output.Column{output.Name("NAME"), output.Plain("ROLE"), output.Fact("MAY"), output.Name("VIRTUAL HOST"), output.Plain("SIGNED IN")}
		return p.Table(&output.Table{Columns: columns, Rows: [][]any{{a.Name, a.Role, a.may(), a.VHost, a.Via}}})
	})
}
