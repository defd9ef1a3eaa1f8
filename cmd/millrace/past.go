package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// pastSettings are those of a command that lists what was, the newest first.
type pastSettings struct {
	clientSettings

	From  string `placeholder:"TIME" help:"Only from this time on, as --at of millrace schedule takes it."`
	To    string `placeholder:"TIME" help:"Only before this time."`
	Limit int    `default:"25" help:"How many at most, up to 500."`
	Next  string `placeholder:"NEXT" help:"Go on where an earlier list ended."`
	JSON  bool   `name:"json" help:"Print the API's answer."`
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
	if err := setTimes(query, map[string]string{"from": s.From, "to": s.To}, time.Now()); err != nil {
		return err
	}
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(out.Out, body)
	}
	var list pastList[T]
	if err := json.Unmarshal(body, &list); err != nil {
		return unreadable(err)
	}
	rows := make([][]string, len(list.Items))
	for i := range list.Items {
		rows[i] = cells(&list.Items[i])
	}
	if err := printTable(out.Out, titles, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out.Out, list.end())
	return err
}
