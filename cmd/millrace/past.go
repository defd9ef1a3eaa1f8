package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// pastSettings are those of a command that lists what was, the newest first.
type pastSettings struct {
	lookSettings
	span

	Limit int    `short:"n" default:"25" help:"Maximum number of rows, up to 500 (${default})."`
	Next  string `placeholder:"NEXT" help:"Continue an earlier list, with the value that it ended with."`
}

// pastList is a list of what was, as the API gives it.
type pastList[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
	Older bool    `json:"older_than_kept"`
}

// end says how to see more, or why the list ends.
func (l *pastList[T]) end() string {
	switch {
	case l.Next != nil:
		return fmt.Sprintf("%d shown; more with --next %s", len(l.Items), *l.Next)
	case len(l.Items) == 0 && l.Older:
		return "none; older records are not kept"
	case len(l.Items) == 0:
		return "none"
	case l.Older:
		return fmt.Sprintf("%d shown; older records are not kept", len(l.Items))
	}
	return fmt.Sprintf("%d in all", len(l.Items))
}

// listPast asks for such a list, with what else is chosen, and prints it.
func listPast[T any](ctx context.Context, out output.Streams, s *pastSettings, path string, chosen map[string]string, columns []output.Column, cells func(*T) []any) error {
	query := url.Values{"limit": {strconv.Itoa(s.Limit)}}
	setGiven(query, chosen)
	setGiven(query, map[string]string{"next": s.Next})
	if err := s.set(query); err != nil {
		return err
	}
	return look(ctx, out, &s.lookSettings, path, query, func(p *output.Printer, l *pastList[T]) error {
		if err := p.Table(output.TableOf(columns, l.Items, cells)); err != nil {
			return err
		}
		return p.Note("%s", l.end())
	})
}
