package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// output is where a command reads and writes; Out is its result, Err what is said about it.
type output struct {
	In       io.Reader
	Out, Err io.Writer
}

// isTerminal reports whether a person sees what is written there.
func isTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// size is that of the terminal which shows the result; 0, 0 if none does.
func (o output) size() (columns, lines int) {
	if !isTerminal(o.Out) {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(o.Out.(*os.File).Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

func (o output) width() int {
	columns, _ := o.size()
	return columns
}

// color reports whether the result is written in colour: to a terminal that has them, unless NO_COLOR is set (https://no-color.org).
func (o output) color() bool {
	return isTerminal(o.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// interactive reports whether there is a person to ask.
func (o output) interactive() bool { return isTerminal(o.In) && isTerminal(o.Err) }

// Colours, as terminals take them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colours are those of the states that are worth to be seen.
var colours = map[string]string{
	"critical": red, "failed": red, "dead": red, "down": red, "lost": red, "fail": red, "crashed": red, "minority": red, "no_consumers": red, "saturated": red,
	"warning": yellow, "note": yellow, "paused": yellow, "quiet": yellow, "stopping": yellow, "discarded": yellow, "expired": yellow,
	"ok": green, "success": green, "live": green, "running": green, "done": green,
}

// paint gives a cell its colour, if it has one.
func (p *printer) paint(c column, cell string, title bool) string {
	if !p.color {
		return cell
	}
	code := ""
	switch {
	case title:
		code = bold
	case c.kind == stateKind:
		word, _, _ := strings.Cut(strings.ToLower(cell), " ")
		code = colours[word]
	}
	if code == "" || cell == "" {
		return cell
	}
	return "\x1b[" + code + "m" + cell + "\x1b[0m"
}
