package output

import (
	"encoding/csv"
	"fmt"
	"strings"
	"time"
)

// kind is what a column holds, and so how it is written and cut.
type kind int

const (
	plainKind kind = iota
	textKind
	dueKind
	timeKind
	idKind
	nameKind
	stateKind
	factKind
)

// Column is a column of a table.
type Column struct {
	title string
	kind  kind
}

func columnOf(k kind) func(string) Column {
	return func(title string) Column { return Column{title, k} }
}

// Columns with a title, by what they hold.
var (
	Plain = columnOf(plainKind) // never cut
	Text  = columnOf(textKind)  // free text: the first to be cut
	Due   = columnOf(dueKind)   // a time and how far away it is; on a narrow terminal only the latter
	Time  = columnOf(timeKind)  // a time
	ID    = columnOf(idKind)    // a job's id
	Name  = columnOf(nameKind)  // a name: the last to be cut
	State = columnOf(stateKind) // in colour
	Fact  = columnOf(factKind)  // what is known of one thing: cut by the terminal only
)

// Table is rows under titles. A cell is a text, a number or a time; nil is an empty cell.
type Table struct {
	Columns []Column
	Rows    [][]any
	Bare    bool // without titles
}

// Add adds a row.
func (t *Table) Add(cells ...any) { t.Rows = append(t.Rows, cells) }

// TableOf returns a table with a row for each item.
func TableOf[T any](columns []Column, items []T, cells func(*T) []any) *Table {
	t := &Table{Columns: columns}
	for i := range items {
		t.Rows = append(t.Rows, cells(&items[i]))
	}
	return t
}

// List prints a table, and below it a line for people.
func (p *Printer) List(t *Table, end string) error {
	if err := p.Table(t); err != nil {
		return err
	}
	return p.Note("%s", end)
}

// Table prints a table, or nothing if it has no rows. As CSV it always has its titles.
func (p *Printer) Table(t *Table) error {
	if p.form == FormCSV {
		return csv.NewWriter(p.w).WriteAll(append([][]string{t.titles()}, t.records()...))
	}
	if len(t.Rows) == 0 {
		return nil
	}
	l := p.layout(t)
	l.fit(p.width)
	var lines strings.Builder
	if !t.Bare {
		lines.WriteString(p.line(l, l.titles, true))
	}
	for _, row := range l.rows {
		lines.WriteString(p.line(l, row, false))
	}
	_, err := fmt.Fprint(p.w, lines.String())
	return err
}

// titles returns the names of CSV columns.
func (t *Table) titles() []string {
	var titles []string
	for _, c := range t.Columns {
		titles = append(titles, strings.ReplaceAll(strings.ToLower(c.title), " ", "_"))
	}
	return titles
}

func (t *Table) records() [][]string {
	records := make([][]string, len(t.Rows))
	for i, row := range t.Rows {
		for _, cell := range row {
			if when, is := cell.(time.Time); is {
				cell = when.Format(time.RFC3339)
			}
			records[i] = append(records[i], cellText(cell))
		}
	}
	return records
}

func cellText(cell any) string {
	if cell == nil {
		return ""
	}
	return fmt.Sprint(cell)
}
