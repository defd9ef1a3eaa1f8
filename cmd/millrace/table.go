package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
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

// column is one column of a table.
type column struct {
	title string
	cell  func(i *item, now time.Time) string
}

var (
	colDue     = column{"DUE", func(i *item, now time.Time) string { return i.time(now) }}
	colDied    = column{"DIED", func(i *item, now time.Time) string { return i.time(now) }}
	colJID     = column{"JID", func(i *item, _ time.Time) string { return i.jid() }}
	colClass   = column{"CLASS", func(i *item, _ time.Time) string { return i.Millrace.Class }}
	colQueue   = column{"QUEUE", func(i *item, _ time.Time) string { return i.Millrace.Queue }}
	colAttempt = column{"ATTEMPT", func(i *item, _ time.Time) string { return fmt.Sprint(i.Millrace.Attempt) }}
	colArgs    = column{"ARGS", func(i *item, _ time.Time) string { return short(string(i.Job.Args)) }}
	colError   = column{"ERROR", func(i *item, _ time.Time) string { return short(i.error()) }}
)

func (i *item) time(now time.Time) string {
	at := moment(i.Millrace.At)
	return at.In(now.Location()).Format(time.DateTime) + "  " + relative(at, now)
}

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

func (p *page) print(w io.Writer, s set, now time.Time) error {
	rows := make([][]string, len(p.Items))
	for n := range p.Items {
		for _, c := range s.columns {
			rows[n] = append(rows[n], c.cell(&p.Items[n], now))
		}
	}
	if err := printTable(w, titles(s.columns), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, p.end())
	return err
}

func titles(columns []column) []string {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	return titles
}

// end says how much is shown, and how the list goes on. Where a search ended before it knew how much there is, a page would only look at the same
// entries again.
func (p *page) end() string {
	shown := int64(len(p.Items))
	if p.Filtered == nil && p.Next != nil {
		return fmt.Sprintf("%s; --next %s goes on", summary(shown, p.Total, nil, 0), *p.Next)
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
	case match == nil:
		said = fmt.Sprintf("%d that match, %d in all", shown, total)
	case *match == total:
		said = fmt.Sprintf("%d of %d", shown, total)
	default:
		said = fmt.Sprintf("%d of %d that match, %d in all", shown, *match, total)
	}
	if next > 0 {
		said += fmt.Sprintf("; --page %d goes on", next)
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

// printPage prints a page of a list under titles.
func printPage[T any](page int64, titles []string, cells func(*T) []string) func(io.Writer, *list[T]) error {
	return func(w io.Writer, l *list[T]) error {
		if err := printTable(w, titles, rowsOf(l.Items, cells)); err != nil {
			return err
		}
		var next int64
		if page < l.PageCount {
			next = page + 1
		}
		_, err := fmt.Fprintln(w, summary(int64(len(l.Items)), l.Total, &l.Filtered, next))
		return err
	}
}

func rowsOf[T any](items []T, cells func(*T) []string) [][]string {
	rows := make([][]string, len(items))
	for i := range items {
		rows[i] = cells(&items[i])
	}
	return rows
}

// printTable prints rows, if there are any, under titles.
func printTable(w io.Writer, titles []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	return printRows(w, append([][]string{titles}, rows...))
}

// printRows prints rows in columns. What clients wrote cannot move the cursor.
func printRows(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = plain(row[i])
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}

// plain replaces what is not to be seen, so that a job's bytes stay in their cell.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
}

const longestCell = 60

func short(s string) string {
	runes := []rune(s)
	if len(runes) <= longestCell {
		return s
	}
	return string(runes[:longestCell-1]) + "…"
}

// printJSON prints an answer as it came, indented; its numbers keep all their digits.
func printJSON(w io.Writer, body []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, body, "", "  "); err != nil {
		return fmt.Errorf("the sidecar's answer is no JSON: %w", err)
	}
	indented.WriteByte('\n')
	_, err := w.Write(indented.Bytes())
	return err
}
