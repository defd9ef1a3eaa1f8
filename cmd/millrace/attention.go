package main

import (
	"context"
	"fmt"
	"io"
)

const attentionPath = "/api/attention"

type attentionCmd struct{ lookSettings }

// needs are what needs a look, as the API gives them.
type needs struct {
	Items []need `json:"items"`
}

type need struct {
	Kind     string `json:"kind"`
	Severity string `json:"severity"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
}

func (n *need) cells() []string { return []string{n.Severity, n.Kind, n.Subject, n.Text} }

// Run shows what needs a look.
func (c *attentionCmd) Run(ctx context.Context, out output) error {
	return look(ctx, out, &c.lookSettings, attentionPath, nil, printAttention)
}

func printAttention(w io.Writer, n *needs) error {
	if len(n.Items) == 0 {
		_, err := fmt.Fprintln(w, "nothing needs a look")
		return err
	}
	return printTable(w, []string{"SEVERITY", "KIND", "SUBJECT", "TEXT"}, rowsOf(n.Items, (*need).cells))
}
