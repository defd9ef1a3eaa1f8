package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
)

// pastSettings are those of a command that lists what was, the newest first.
type pastSettings struct {
	lookSettings
	span

	Limit int    `default:"25" help:"How many at most, up to 500."`
	Next  string `placeholder:"NEXT" help:"Go on where an earlier list ended."`
}

// pastList is a list of what was, as the API gives it.
type pastList[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"`
	Older bool    `json:"older_than_kept"`
}

// end says how the list goes on, or why it ends.
func (l *pastList[T]) end() string {
	switch {
	case l.Next != nil:
		return fmt.Sprintf("%d shown; --next %s goes on", len(l.Items), *l.Next)
	case l.Older:
		return fmt.Sprintf("%d shown; what is older is not kept", len(l.Items))
	case len(l.Items) == 0:
		return "none"
	}
	return fmt.Sprintf("%d in all", len(l.Items))
}

// listPast asks for such a list, with what else is chosen, and prints it.
func listPast[T any](ctx context.Context, out output, s *pastSettings, path string, chosen map[string]string, titles []string, cells func(*T) []string) error {
	query := url.Values{"limit": {strconv.Itoa(s.Limit)}}
	setGiven(query, chosen)
	setGiven(query, map[string]string{"next": s.Next})
	if err := s.set(query); err != nil {
		return err
	}
	return look(ctx, out, &s.lookSettings, path, query, func(w io.Writer, l *pastList[T]) error {
		if err := printTable(w, titles, rowsOf(l.Items, cells)); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, l.end())
		return err
	})
}
