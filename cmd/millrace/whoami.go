package main

import (
	"context"
	"io"
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

// may is what whoever asks may do.
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
func (c *whoamiCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, "/api/whoami", nil, func(w io.Writer, a *whoami) error {
		return printTable(w, []string{"NAME", "ROLE", "MAY", "VIRTUAL HOST", "SIGNED IN"}, [][]string{{a.Name, a.Role, a.may(), a.VHost, a.Via}})
	})
}
