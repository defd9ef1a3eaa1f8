package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

// kind says what a column holds, and so how it is written and cut.
type kind int

const (
	plainKind kind = iota // never cut
	textKind              // free text: the first to be cut
	dueKind               // a time, with how far away it is; on a narrow terminal that alone
	atKind                // a time
	idKind                // a job's id
	nameKind              // a name: the last to be cut
	stateKind             // in colour
	factKind              // what is known of one thing: cut by the terminal alone
)

// wideOnly marks a column that is only in wide tables and in CSV.
const wideOnly kind = 1 << 8

// column is a column of a table.
type column struct {
	title string
	kind  kind
}

// table is rows under titles. A cell is a text, a number or a time; nil is an empty cell.
type table struct {
	columns []column
	rows    [][]any
	bare    bool // without titles
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// tableOf makes a table with a row for each item.
func tableOf[T any](columns []column, items []T, cells func(*T) []any) *table {
	t := &table{columns: columns}
	for i := range items {
		t.rows = append(t.rows, cells(&items[i]))
	}
	return t
}

const (
	longestCell     = 60  // of free text
	longestWideCell = 500 // in a wide table
	leastText       = 12  // what is left of free text on a narrow terminal
	leastID         = 9
	leastName       = 8
	gap             = "  "
)

// table prints a table; nothing if it has no rows. What clients wrote cannot move the cursor.
func (p *printer) table(t *table) error {
	if p.form == formCSV {
		return p.csv(t.titles(), t.csv())
	}
	if len(t.rows) == 0 {
		return nil
	}
	l := p.layout(t)
	l.fit(p.width)
	var lines strings.Builder
	if !t.bare {
		lines.WriteString(p.line(l, l.titles, true))
	}
	for _, row := range l.rows {
		lines.WriteString(p.line(l, row, false))
	}
	_, err := fmt.Fprint(p.w, lines.String())
	return err
}

// titles are the names of CSV columns.
func (t *table) titles() []string {
	var titles []string
	for _, c := range t.columns {
		titles = append(titles, strings.ReplaceAll(strings.ToLower(c.title), " ", "_"))
	}
	return titles
}

func (t *table) csv() [][]string {
	rows := make([][]string, len(t.rows))
	for i, row := range t.rows {
		for _, cell := range row {
			if when, is := cell.(time.Time); is {
				cell = when.Format(time.RFC3339)
			}
			rows[i] = append(rows[i], cellText(cell))
		}
	}
	return rows
}

func cellText(cell any) string {
	if cell == nil {
		return ""
	}
	return fmt.Sprint(cell)
}

// layout is a table that is about to be printed.
type layout struct {
	columns []column
	titles  []string
	rows    [][]string
	short   [][]string // the relative form of times
	widths  []int
}

// layout writes the cells of the columns that are shown.
func (p *printer) layout(t *table) *layout {
	l := &layout{rows: make([][]string, len(t.rows)), short: make([][]string, len(t.rows))}
	zone, _ := p.now.Zone()
	for n, c := range t.columns {
		if c.kind&wideOnly != 0 {
			if p.form != formWide {
				continue
			}
			c.kind &^= wideOnly
		}
		title := c.title
		if c.kind == dueKind || c.kind == atKind {
			title += " (" + zone + ")"
		}
		l.columns, l.titles = append(l.columns, c), append(l.titles, title)
		for i, row := range t.rows {
			whole, short := p.cell(c, row[n])
			l.rows[i], l.short[i] = append(l.rows[i], whole), append(l.short[i], short)
		}
	}
	return l
}

// cell is a cell as a table shows it, and shorter.
func (p *printer) cell(c column, cell any) (whole, short string) {
	when, isTime := cell.(time.Time)
	switch {
	case isTime:
		layout := time.DateTime
		if c.kind == factKind { // no title has the zone
			layout = humantime.WithZone
		}
		whole, short = when.In(p.now.Location()).Format(layout), humantime.Relative(when, p.now)
		if c.kind != atKind {
			whole += gap + short
		}
		return whole, short
	case c.kind == textKind && p.form == formWide:
		whole = cut(plain(cellText(cell)), longestWideCell)
	case c.kind == textKind:
		whole = cut(plain(cellText(cell)), longestCell)
	default:
		whole = plain(cellText(cell))
	}
	return whole, whole
}

// fit makes the table as narrow as a terminal: it cuts free text first, then times, ids and names.
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
			l.widths[i] = max(l.widths[i], cells(cell))
		}
	}
}

// width is that of the longest line.
func (l *layout) width() int {
	total := len(gap) * (len(l.widths) - 1)
	for _, w := range l.widths {
		total += w
	}
	return total
}

// shrink narrows the columns of a kind, the widest first, until the table fits or each of them is at its least.
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
		if c.kind != dueKind && c.kind != atKind {
			continue
		}
		l.titles[i], _, _ = strings.Cut(l.titles[i], " (")
		for row := range l.rows {
			l.rows[row][i] = l.short[row][i]
		}
	}
}

// line is a row. The last column has no spaces behind it.
func (p *printer) line(l *layout, row []string, title bool) string {
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
		padding := l.widths[i] - cells(cell)
		room -= l.widths[i] + len(gap)
		if i == len(row)-1 || room <= 0 {
			padding = 0
		} else {
			padding += len(gap)
		}
		b.WriteString(p.paint(l.columns[i], cell, title))
		b.WriteString(strings.Repeat(" ", padding))
	}
	return strings.TrimRight(b.String(), " ") + "\n"
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

// cells is how many cells of a terminal a text takes.
func cells(s string) (n int) {
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
	if cells(s) <= most {
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
