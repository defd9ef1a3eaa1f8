package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// page is a page of a list as the API gives it.
type page struct {
	Total    int64   `json:"total_count"`
	Filtered *int64  `json:"filtered_count"` // nil where it is not known
	Page     int64   `json:"page"`
	Next     *string `json:"next"` // nil: there is no more
	Items    []item  `json:"items"`
}

// item is a record with what Millrace says of it.
type item struct {
	JID          string `json:"jid"`
	ErrorClass   string `json:"error_class"`
	ErrorMessage string `json:"error_message"`
	Job          struct {
		JID  string          `json:"jid"`
		Args json.RawMessage `json:"args"`
	} `json:"job"`
	Millrace struct {
		Set     string  `json:"set"` // of one job's entries alone
		Offset  int64   `json:"offset"`
		At      float64 `json:"at"`
		Queue   string  `json:"queue"`
		Class   string  `json:"class"`
		Attempt int     `json:"attempt"`
	} `json:"millrace"`
}

func unreadable(err error) error { return fmt.Errorf("the sidecar's answer cannot be read: %w", err) }

func (i *item) time() time.Time { return humantime.Unix(i.Millrace.At) }

func (i *item) jid() string {
	if i.JID != "" {
		return i.JID
	}
	return i.Job.JID
}

func (i *item) error() string { return failure(i.ErrorClass, i.ErrorMessage) }

func failure(class, message string) string {
	if class == "" || message == "" {
		return class + message
	}
	return class + ": " + message
}

func (p *page) print(to *output.Printer, s set) error {
	if err := to.Table(output.TableOf(s.columns, p.Items, s.cells)); err != nil {
		return err
	}
	return to.Note("%s", p.end())
}

// end says how much is shown, and how to see more. Where a search ended before it knew how much there is, a page would only look at the
// same entries again.
func (p *page) end() string {
	shown := int64(len(p.Items))
	if p.Filtered == nil && p.Next != nil {
		return fmt.Sprintf("%s; more with --next %s", summary(shown, p.Total, nil, 0), *p.Next)
	}
	return summary(shown, p.Total, p.Filtered, p.more())
}

// more is the next page, 0 if this is the last.
func (p *page) more() int64 {
	if p.Next == nil {
		return 0
	}
	return p.Page + 1
}

// summary says how much of a list is shown. match is nil where it is not known how many there are to show.
func summary(shown, total int64, match *int64, next int64) string {
	var said string
	switch {
	case total == 0:
		return "none"
	case shown == total:
		return fmt.Sprintf("%d in all", total)
	case shown == 0 && (match == nil || *match == 0):
		said = fmt.Sprintf("none that match, %d in all", total)
	case match == nil:
		said = fmt.Sprintf("%d that match, %d in all", shown, total)
	case *match == total:
		said = fmt.Sprintf("%d of %d", shown, total)
	default:
		said = fmt.Sprintf("%d of %d that match, %d in all", shown, *match, total)
	}
	if next > 0 {
		said += fmt.Sprintf("; more with --page %d", next)
	}
	return said
}

// list is a page of what is no set.
type list[T any] struct {
	Total     int64 `json:"total_count"`
	Filtered  int64 `json:"filtered_count"`
	PageCount int64 `json:"page_count"`
	Items     []T   `json:"items"`
}

// printPage prints a page of a list.
func printPage[T any](page int64, columns []output.Column, cells func(*T) []any) func(*output.Printer, *list[T]) error {
	return func(p *output.Printer, l *list[T]) error {
		if err := p.Table(output.TableOf(columns, l.Items, cells)); err != nil {
			return err
		}
		var next int64
		if page < l.PageCount {
			next = page + 1
		}
		return p.Note("%s", summary(int64(len(l.Items)), l.Total, &l.Filtered, next))
	}
}
