package output

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// ErrReported is returned by a command that has already printed what is wrong.
var ErrReported = errors.New("reported")

// Streams are where a command reads and writes. Out gets its result, Err what is said about it.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// Size returns the size of the terminal that shows the result, or 0, 0 if there is none.
func (s Streams) Size() (columns, lines int) {
	if !IsTerminal(s.Out) {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(s.Out.(*os.File).Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, lines
}

// Width returns the columns of the terminal that shows the result, or 0 if there is none.
func (s Streams) Width() int {
	columns, _ := s.Size()
	return columns
}

// color reports whether the result is printed in colour (see https://no-color.org).
func (s Streams) color() bool {
	return IsTerminal(s.Out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// interactive reports whether there is a person to ask.
func (s Streams) interactive() bool { return IsTerminal(s.In) && IsTerminal(s.Err) }

// Escape codes of colours.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// colours are those of states, by their first word.
var colours = map[string]string{
	"critical": red, "failed": red, "dead": red, "down": red, "lost": red, "fail": red, "crashed": red,
	"minority": red, "no_consumers": red, "saturated": red,
	"warning": yellow, "note": yellow, "paused": yellow, "quiet": yellow, "stopping": yellow,
	"discarded": yellow, "expired": yellow,
	"ok": green, "success": green, "live": green, "running": green, "done": green,
}

// Paint returns the name of a state in its colour, if it has one.
func (p *Printer) Paint(state string) string {
	word, _, _ := strings.Cut(strings.ToLower(state), " ")
	return p.paint(colours[word], state)
}

func (p *Printer) paint(code, text string) string { return paint(p.color, code, text) }

func paint(color bool, code, text string) string {
	if !color || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Confirm is the flag of a command that destroys something.
type Confirm struct {
	Yes bool `short:"y" help:"Do it without asking. Needed where there is no terminal to ask on."`
}

var errDeclined = errors.New("nothing was changed")

// Ask asks on a terminal whether to do what a question says, such as "Purge 12 jobs of queue
// mails?". It returns an error unless the answer or --yes allows it.
func (c *Confirm) Ask(s Streams, format string, args ...any) error {
	if c.Yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !s.interactive() {
		return usage.Errorf("%s There is no terminal to ask on: add --yes to do it", question)
	}
	if _, err := fmt.Fprintf(s.Err, "%s [y/N] ", question); err != nil {
		return err
	}
	reply, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil { // the terminal was closed
		fmt.Fprintln(s.Err)
		return errDeclined
	}
	switch strings.ToLower(strings.TrimSpace(reply)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
