package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

type helpCmd struct {
	Command []string `arg:"" optional:"" help:"The command."`
}

// Run prints the help of a command.
func (c *helpCmd) Run(ctx context.Context, out output.Streams) error {
	if code := execute(ctx, append(slices.Clone(c.Command), "--help"), out.Out, out.Err); code != 0 {
		return usage.Fault(output.ErrReported)
	}
	return nil
}

const (
	narrowestHelp = 40
	usualHelp     = 100 // columns, also where the terminal has more, or there is none
	namesWidth    = 30  // of the output.Column of names, at most
)

// printHelp prints what a command is for, how it is called, an example, and its flags: its own first.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	width := usualHelp
	if columns := (output.Streams{Out: ctx.Stdout}).Width(); columns > 0 {
		width = min(max(columns, narrowestHelp), usualHelp)
	}
	h := &helpText{width: width, describe: kong.DefaultHelpValueFormatter}
	h.command(node)
	_, err := fmt.Fprint(ctx.Stdout, h.text.String())
	return err
}

// helpText is a help that is being written.
type helpText struct {
	text     strings.Builder
	width    int
	describe func(*kong.Value) string
}

func (h *helpText) command(node *kong.Node) {
	h.line("Usage: %s", usageOf(node))
	h.line("")
	h.wrapped("", node.Help)
	if lines := examples[namesOf(node)]; len(lines) > 0 {
		h.heading("Example:")
		for _, line := range lines {
			h.line("  $ %s", line)
		}
	}
	if len(node.Positional) > 0 {
		h.heading("Arguments:")
		var rows [][2]string
		for _, argument := range node.Positional {
			rows = append(rows, [2]string{argument.Summary(), h.describe(argument)})
		}
		h.rows(rows)
	}
	for _, group := range commandGroups(node) {
		h.heading(group.title)
		h.rows(group.rows)
	}
	for _, group := range flagGroups(node) {
		h.heading(group.title)
		var rows [][2]string
		for _, flag := range group.flags {
			rows = append(rows, [2]string{flagName(flag), h.describe(flag.Value)})
		}
		h.rows(rows)
	}
	if len(node.Children) > 0 {
		h.line("")
		h.line("millrace help %s<command> says more about a command.", strings.TrimPrefix(namesOf(node)+" ", " "))
	}
}

func (h *helpText) line(format string, args ...any) { fmt.Fprintf(&h.text, format+"\n", args...) }

func (h *helpText) heading(title string) { h.line("\n%s", title) }

// rows writes names with what they mean beside them.
func (h *helpText) rows(rows [][2]string) {
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
		text := wrap(row[1], h.width-len(indent))
		h.line("%s", strings.TrimRight(first+text[0], " "))
		for _, more := range text[1:] {
			h.line("%s%s", indent, more)
		}
	}
}

func (h *helpText) wrapped(indent, text string) {
	for _, line := range wrap(text, h.width-len(indent)) {
		h.line("%s%s", indent, line)
	}
}

// wrap breaks a text into lines of at most so many columns, where its words allow that.
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

// usageOf is how a command is called.
func usageOf(node *kong.Node) string {
	words := []string{pathOf(node)}
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

// pathOf is a command with the names before it, as it is typed.
func pathOf(node *kong.Node) string { return strings.TrimSpace("millrace " + namesOf(node)) }

// namesOf is the same without the program's name; empty for the program itself.
func namesOf(node *kong.Node) string {
	if node.Parent == nil {
		return ""
	}
	return strings.TrimSpace(namesOf(node.Parent) + " " + node.Name)
}

// shown are the commands of a node that are not hidden.
func shown(node *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(node.Children), func(n *kong.Node) bool { return n.Hidden })
}

type commandGroup struct {
	title string
	rows  [][2]string
}

// commandGroups are the commands below one, in groups.
func commandGroups(node *kong.Node) (groups []commandGroup) {
	for _, child := range shown(node) {
		title := "Commands:"
		if child.Group != nil {
			title = child.Group.Title
		}
		if len(groups) == 0 || groups[len(groups)-1].title != title {
			groups = append(groups, commandGroup{title: title})
		}
		said := child.Help
		if len(child.Aliases) > 0 {
			said += " Also: " + strings.Join(child.Aliases, ", ") + "."
		}
		if node.DefaultCmd == child {
			said += " The default."
		}
		last := &groups[len(groups)-1]
		last.rows = append(last.rows, [2]string{namesOf(child), said})
	}
	return groups
}

type flagGroup struct {
	title string
	flags []*kong.Flag
}

// flagGroups are the flags of a command in groups: its own, those that connect, and those that every command has.
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
	// Those that most commands have stand behind those that are a command's own.
	usual := []string{"yes", "output", "help"}
	slices.SortStableFunc(own.flags, func(a, b *kong.Flag) int { return slices.Index(usual, a.Name) - slices.Index(usual, b.Name) })
	if len(own.flags) == 0 {
		return groups
	}
	return append([]flagGroup{own}, groups...)
}

// flagName is a flag as it is typed.
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
