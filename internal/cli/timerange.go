package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// timeRange chooses a range of time.
type timeRange struct {
	From string `placeholder:"TIME" help:"Only from this time on: 2026-12-24 18:00, 18:00, or any other form that millrace schedule --at takes."`
	To   string `placeholder:"TIME" help:"Only before this time."`
}

// set puts the times that are given into a query.
func (r *timeRange) set(query url.Values) error { return setTimes(query, r.From, r.To, time.Now()) }

func setTimes(query url.Values, from, to string, now time.Time) error {
	for name, text := range map[string]string{"from": from, "to": to} {
		if text == "" {
			continue
		}
		at, err := parseTime(name, text, now)
		if err != nil {
			return err
		}
		query.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// parseTime reads the time that a flag has.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	at, err := humantime.Parse(text, now)
	return at, named("--"+flag, err)
}

// historyFlags are those of a command that lists what happened, the newest first.
type historyFlags struct {
	apiFlags
	timeRange

	Limit int    `short:"n" default:"25" help:"Maximum number of rows, up to 500 (${default})."`
	Next  string `placeholder:"NEXT" help:"Continue an earlier list, with the value that it ended with."`
}

// endOfHistory says how to see more, or why the list ends.
func endOfHistory[T any](h *answer.History[T]) string {
	switch {
	case h.Next != nil:
		return fmt.Sprintf("%d shown; more with --next %s", len(h.Items), *h.Next)
	case len(h.Items) == 0 && h.Older:
		return "none; older records are not kept"
	case len(h.Items) == 0:
		return "none"
	case h.Older:
		return fmt.Sprintf("%d shown; older records are not kept", len(h.Items))
	}
	return fmt.Sprintf("%d in all", len(h.Items))
}

// getHistory asks for such a list, with what else the query chooses, and prints it.
func (r rows[T]) getHistory(ctx context.Context, out output.Streams, c *historyFlags, path string, query url.Values) error {
	query.Set("limit", strconv.Itoa(c.Limit))
	if c.Next != "" {
		query.Set("next", c.Next)
	}
	if err := c.set(query); err != nil {
		return err
	}
	return get(ctx, out, &c.apiFlags, path, query, func(p *output.Printer, h *answer.History[T]) error {
		return p.List(r.table(h.Items), endOfHistory(h))
	})
}
