package output

import (
	"math"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"github.com/millrace-jobs/millrace/internal/cli/humantime"
)

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
