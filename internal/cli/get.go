package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// apiFlags are the flags of a command that calls the API.
type apiFlags struct {
	flags.Client
	output.Result
}

// get asks for something and prints it: as it came for programs, and as show does for others.
func get[T any](ctx context.Context, out output.Streams, c *apiFlags, path string, query url.Values, show func(*output.Printer, *T) error) error {
	body, err := c.APIClient().Do(ctx, apiclient.Request{Path: path, Query: query})
	if err != nil {
		return err
	}
	p := c.Printer(out)
	if p.Structured() {
		return p.Answer(body)
	}
	found, err := apiclient.Decode[T](body)
	if err != nil {
		return err
	}
	return show(p, found)
}

// getFacts asks for one thing and prints all that is known of it.
func (c *apiFlags) getFacts(ctx context.Context, out output.Streams, path string, query url.Values) error {
	return c.printFacts(ctx, out, apiclient.Request{Path: path, Query: query})
}

// printFacts sends a request and prints all that its answer says.
func (c *apiFlags) printFacts(ctx context.Context, out output.Streams, r apiclient.Request) error {
	body, err := c.APIClient().Do(ctx, r)
	if err != nil {
		return err
	}
	return c.Printer(out).Facts(body)
}

// rows are how the items of a list are shown.
type rows[T any] struct {
	columns []output.Column
	cells   func(*T) []any
}

func (r rows[T]) table(items []T) *output.Table { return output.TableOf(r.columns, items, r.cells) }

// getAll asks for a list that has no pages, and prints it.
func (r rows[T]) getAll(ctx context.Context, out output.Streams, c *apiFlags, path string, query url.Values) error {
	return get(ctx, out, c, path, query, func(p *output.Printer, items *[]T) error {
		n := int64(len(*items))
		return p.List(r.table(*items), summary(n, n, nil, 0))
	})
}

// fields are the members of a request's body, or what an action has changed.
type fields = output.Fields

// action is a request that changes something, and what is reported when it is done.
type action struct {
	apiclient.Request
	about string // what it is done to, in errors; empty if the API's errors say that
	did   fields // for programs
	said  string // for people
}

// act has the API do something, and reports that it is done.
func (c *apiFlags) act(ctx context.Context, out output.Streams, a action) error {
	if _, err := c.APIClient().Do(ctx, a.Request); err != nil {
		return named(a.about, err)
	}
	return c.Printer(out).Done(a.did, "%s", a.said)
}

// send has the API do something, and decodes its answer.
func send[T any](ctx context.Context, c *apiFlags, method, path string, body []byte) (*T, error) {
	did, err := c.APIClient().Do(ctx, apiclient.Request{Method: method, Path: path, Body: body})
	if err != nil {
		return nil, err
	}
	return apiclient.DecodeStrict[T](did)
}

// named puts in front of an error what it is about.
func named(about string, err error) error {
	if err == nil || about == "" {
		return err
	}
	return fmt.Errorf("%s: %w", about, err)
}

// reasonFlag is that of an action that stands in the journal.
type reasonFlag struct {
	Reason string `placeholder:"TEXT" help:"Reason, kept in the journal."`
}

// body returns the body of an action: the reason, or nothing if none is given.
func (r *reasonFlag) body() []byte {
	if r.Reason == "" {
		return nil
	}
	return fields{"reason": r.Reason}.JSON()
}

// pageFlags choose a page of a list.
type pageFlags struct {
	Limit int   `short:"n" default:"${limit}" help:"Maximum number of rows, up to 500 (${default})."`
	Page  int64 `default:"1" help:"Page of the list (${default})."`
}

// getPage asks for a page of a list, with what else the query chooses, and prints it.
func (r rows[T]) getPage(ctx context.Context, out output.Streams, c *apiFlags, f *pageFlags, path string, query url.Values) error {
	query.Set("page", strconv.FormatInt(f.Page, 10))
	query.Set("page_size", strconv.Itoa(f.Limit))
	return get(ctx, out, c, path, query, func(p *output.Printer, l *answer.Page[T]) error {
		var next int64
		if l.PageCount != nil && f.Page < *l.PageCount {
			next = f.Page + 1
		}
		return p.List(r.table(l.Items), summary(int64(len(l.Items)), l.Total, l.Filtered, next))
	})
}

// given returns a query of names and values, without those that are empty.
func given(namesAndValues ...string) url.Values {
	query := url.Values{}
	for pair := range slices.Chunk(namesAndValues, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	return query
}

// summary says how much of a list is shown. match is nil if it is not known how many match. next is
// the number of the next page, or 0.
func summary(shown, total int64, match *int64, next int64) string {
	var text string
	switch {
	case total == 0:
		return "none"
	case shown == total:
		return fmt.Sprintf("%d in all", total)
	case shown == 0 && (match == nil || *match == 0):
		text = fmt.Sprintf("none that match, %d in all", total)
	case match == nil:
		text = fmt.Sprintf("%d that match, %d in all", shown, total)
	case *match == total:
		text = fmt.Sprintf("%d of %d", shown, total)
	default:
		text = fmt.Sprintf("%d of %d that match, %d in all", shown, *match, total)
	}
	if next > 0 {
		text += fmt.Sprintf("; more with --page %d", next)
	}
	return text
}
