package output

import (
	"encoding/csv"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
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

const (
	longestCell     = 60  // of free text
	longestWideCell = 500 // of free text in a wide table
	gap             = "  "
)

// Least widths to which a narrow terminal cuts columns.
const (
	leastText = 12
	leastID   = 9
	leastName = 8
)

// layout is a table that is about to be printed.
type layout struct {
	columns []Column
	titles  []string
	rows    [][]string
	short   [][]string // the rows with relative times
	widths  []int
}

func (p *Printer) layout(t *Table) *layout {
	l := &layout{columns: t.Columns, rows: make([][]string, len(t.Rows)), short: make([][]string, len(t.Rows))}
	zone, _ := p.now.Zone()
	for n, c := range t.Columns {
		title := c.title
		if c.kind == dueKind || c.kind == timeKind {
			title += " (" + zone + ")"
		}
		l.titles = append(l.titles, title)
		for i, row := range t.Rows {
			whole, short := p.cell(c, row[n])
			l.rows[i], l.short[i] = append(l.rows[i], whole), append(l.short[i], short)
		}
	}
	return l
}

// cell returns a cell as a table shows it, and a shorter form for a narrow terminal.
func (p *Printer) cell(c Column, cell any) (whole, short string) {
	when, isTime := cell.(time.Time)
	switch {
	case isTime:
		layout := time.DateTime
		if c.kind == factKind { // no title has the zone
			layout = humantime.WithZone
		}
		whole, short = when.In(p.now.Location()).Format(layout), humantime.Relative(when, p.now)
		if c.kind != timeKind {
			whole += gap + short
		}
		return whole, short
	case c.kind == textKind && p.form == formWide:
		whole = cut(printable(cellText(cell)), longestWideCell)
	case c.kind == textKind:
		whole = cut(printable(cellText(cell)), longestCell)
	default:
		whole = printable(cellText(cell))
	}
	return whole, whole
}

// fit makes the table as narrow as a terminal. It cuts free text first, then times, ids and names.
func (l *layout) fit(terminal int) {
	l.measure()
	if terminal <= 0 {
		return
	}
	l.shrink(terminal, factKind, leastText)
	l.shrink(terminal, textKind, leastText)
	if l.width() > terminal {
		l.relativeTimes()
		l.measure()
		l.shrink(terminal, factKind, leastText)
		l.shrink(terminal, textKind, leastText)
	}
	l.shrink(terminal, idKind, leastID)
	l.shrink(terminal, nameKind, leastName)
	l.shrink(terminal, textKind, 1)
}

func (l *layout) measure() {
	l.widths = make([]int, len(l.columns))
	for _, row := range append([][]string{l.titles}, l.rows...) {
		for i, cell := range row {
			l.widths[i] = max(l.widths[i], Cells(cell))
		}
	}
}

// width returns the width of the longest line.
func (l *layout) width() int {
	total := len(gap) * (len(l.widths) - 1)
	for _, w := range l.widths {
		total += w
	}
	return total
}

// shrink narrows the columns of a kind, the widest first, until the table fits or each of them has
// its least width.
func (l *layout) shrink(terminal int, k kind, least int) {
	for l.width() > terminal {
		widest := -1
		for i, c := range l.columns {
			if c.kind == k && l.widths[i] > least && (widest < 0 || l.widths[i] > l.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		l.widths[widest]--
	}
}

// relativeTimes replaces times by how far away they are.
func (l *layout) relativeTimes() {
	for i, c := range l.columns {
		if c.kind != dueKind && c.kind != timeKind {
			continue
		}
		l.titles[i], _, _ = strings.Cut(l.titles[i], " (")
		for row := range l.rows {
			l.rows[row][i] = l.short[row][i]
		}
	}
}

// line returns a row without trailing spaces.
func (p *Printer) line(l *layout, row []string, title bool) string {
	var b strings.Builder
	room := math.MaxInt
	if p.width > 0 {
		room = p.width
	}
	for i, cell := range row {
		if room <= 0 {
			break
		}
		cell = cut(cell, min(l.widths[i], room))
		padding := l.widths[i] - Cells(cell)
		room -= l.widths[i] + len(gap)
		if i == len(row)-1 || room <= 0 {
			padding = 0
		} else {
			padding += len(gap)
		}
		switch {
		case title:
			cell = p.paint(bold, cell)
		case l.columns[i].kind == stateKind:
			cell = p.Paint(cell)
		}
		b.WriteString(cell + strings.Repeat(" ", padding))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// printable replaces characters that a terminal would obey instead of show.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)
}

// Cells returns how many cells of a terminal a text takes.
func Cells(s string) (n int) {
	for _, r := range s {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	switch k := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case k == width.EastAsianWide, k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut shortens a text to so many cells.
func cut(s string, most int) string {
	if Cells(s) <= most {
		return s
	}
	n := 1 // the dots
	for i, r := range s {
		if n += cellsOf(r); n > most {
			return s[:i] + "…"
		}
	}
	return s
}
