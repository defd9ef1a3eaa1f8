package help

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Executor runs a command line and returns its exit code.
type Executor func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Command is the command help.
type Command struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run prints the help of a command.
func (c *Command) Run(ctx context.Context, out output.Streams, execute Executor) error {
	if code := execute(ctx, append(slices.Clone(c.Command), "--help"), out.Out, out.Err); code != 0 {
		return usage.Fault(output.ErrReported)
	}
	return nil
}

const (
	leastWidth   = 40
	defaultWidth = 100 // in columns, also if the terminal has more or there is none
	namesWidth   = 30  // of the column of names, at most
)

// Print prints what a command is for, how it is called, an example, and its flags: its own first.
func Print(_ kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	width := defaultWidth
	if columns := (output.Streams{Out: ctx.Stdout}).Width(); columns > 0 {
		width = min(max(columns, leastWidth), defaultWidth)
	}
	h := &text{width: width}
	h.command(node)
	_, err := fmt.Fprint(ctx.Stdout, h.String())
	return err
}

// text is a help that is being written.
type text struct {
	strings.Builder
	width int
}

func (h *text) command(node *kong.Node) {
	h.line("Usage: %s", usageOf(node))
	h.line("")
	for _, line := range wrap(node.Help, h.width) {
		h.line("%s", line)
	}
	if lines := Examples[Names(node)]; len(lines) > 0 {
		h.heading("Example:")
		for _, line := range lines {
			h.line("  $ %s", line)
		}
	}
	for _, s := range sections(node) {
		h.heading(s.title)
		h.rows(s.rows)
	}
	if len(node.Children) > 0 {
		h.line("")
		h.line("millrace help %s<command> says more about a command.", strings.TrimPrefix(Names(node)+" ", " "))
	}
}

func (h *text) line(format string, args ...any) { fmt.Fprintf(h, format+"\n", args...) }

func (h *text) heading(title string) { h.line("\n%s", title) }

// rows writes names with their meanings beside them.
func (h *text) rows(rows [][2]string) {
	names := 0
	for _, row := range rows {
		if n := output.Cells(row[0]); n <= namesWidth {
			names = max(names, n)
		}
	}
	indent := strings.Repeat(" ", names+4)
	for _, row := range rows {
		first := fmt.Sprintf("  %-*s  ", names, row[0])
		if output.Cells(row[0]) > names {
			h.line("  %s", row[0])
			first = indent
		}
		lines := wrap(row[1], h.width-len(indent))
		h.line("%s", strings.TrimRight(first+lines[0], " "))
		for _, more := range lines[1:] {
			h.line("%s%s", indent, more)
		}
	}
}

// wrap breaks a text into lines of at most so many columns, if its words allow that.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case output.Cells(*last)+1+output.Cells(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

// usageOf returns how a command is called.
func usageOf(node *kong.Node) string {
	words := []string{Path(node)}
	if len(node.Children) > 0 {
		words = append(words, "<command>")
	}
	for _, argument := range node.Positional {
		words = append(words, argument.Summary())
	}
	for _, flag := range node.Flags {
		if flag.Required {
			words = append(words, flag.Summary())
		}
	}
	return strings.Join(append(words, "[flags]"), " ")
}

// Path returns a command as it is typed, with the names before it.
func Path(node *kong.Node) string { return strings.TrimSpace("millrace " + Names(node)) }

// Names returns the same without the program's name. It is empty for the program itself.
func Names(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(Names(node.Parent) + " " + node.Name)
}

// Shown returns the commands below a node that are not hidden.
func Shown(node *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(node.Children), func(n *kong.Node) bool { return n.Hidden })
}

// section is a part of a help that has names and their meanings.
type section struct {
	title    string
	rows     [][2]string
	commands bool
}

// sections returns the arguments of a node, the commands below it in groups, and its flags in
// groups.
func sections(node *kong.Node) (all []section) {
	add := func(title, name, meaning string) {
		if len(all) == 0 || all[len(all)-1].title != title {
			all = append(all, section{title: title})
		}
		last := &all[len(all)-1]
		last.rows = append(last.rows, [2]string{name, meaning})
	}
	for _, argument := range node.Positional {
		add("Arguments:", argument.Summary(), kong.DefaultHelpValueFormatter(argument))
	}
	for _, child := range Shown(node) {
		title, meaning := "Commands:", child.Help
		if child.Group != nil {
			title = child.Group.Title
		}
		if len(child.Aliases) > 0 {
			meaning += " Also: " + strings.Join(child.Aliases, ", ") + "."
		}
		if node.DefaultCmd == child {
			meaning += " The default."
		}
		add(title, Names(child), meaning)
		all[len(all)-1].commands = true
	}
	for _, group := range flagGroups(node) {
		for _, flag := range group.flags {
			add(group.title, flagName(flag), kong.DefaultHelpValueFormatter(flag.Value))
		}
	}
	return all
}

type flagGroup struct {
	title string
	flags []*kong.Flag
}

// flagGroups returns the flags of a command in groups: its own, those that connect, and those that
// every command has.
func flagGroups(node *kong.Node) (groups []flagGroup) {
	own := flagGroup{title: "Flags:"}
	for n := node; n != nil; n = n.Parent {
		for _, flag := range n.Flags {
			switch {
			case flag.Hidden:
			case flag.Group == nil:
				own.flags = append(own.flags, flag)
			default:
				i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == flag.Group.Title })
				if i < 0 {
					i = len(groups)
					groups = append(groups, flagGroup{title: flag.Group.Title})
				}
				groups[i].flags = append(groups[i].flags, flag)
			}
		}
	}
	// Flags that most commands have come after those that only this command has.
	usual := []string{"yes", "output", "help"}
	slices.SortStableFunc(own.flags, func(a, b *kong.Flag) int { return slices.Index(usual, a.Name) - slices.Index(usual, b.Name) })
	if len(own.flags) == 0 {
		return groups
	}
	return append([]flagGroup{own}, groups...)
}

// flagName returns a flag as it is typed.
func flagName(flag *kong.Flag) string {
	typed := "    --" + flag.Name
	if flag.Short != 0 {
		typed = "-" + string(flag.Short) + ", --" + flag.Name
	}
	if !flag.IsBool() {
		typed += "=" + flag.FormatPlaceHolder()
	}
	return typed
}
