package help

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Man is the command man.
type Man struct {
	Command []string `arg:"" optional:"" help:"The command; millrace itself if none is given."`
	Dir     string   `placeholder:"DIR" help:"Write a page for each command into this folder instead."`
}

// Run prints a man page, or writes all of them.
func (c *Man) Run(out output.Streams, k *kong.Context) error {
	if c.Dir != "" {
		return writePages(c.Dir, k.Model.Node, release(k))
	}
	node := k.Model.Node
	for _, word := range c.Command {
		children := Shown(node)
		i := slices.IndexFunc(children, func(n *kong.Node) bool { return n.Name == word })
		if i < 0 {
			return usage.Errorf("there is no command millrace %s", strings.Join(c.Command, " "))
		}
		node = children[i]
	}
	_, err := fmt.Fprint(out.Out, manPage(node, release(k)))
	return err
}

// release returns the version of the program.
func release(k *kong.Context) string { return k.Model.Vars()["release"] }

func writePages(dir string, node *kong.Node, release string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, pageName(node)+".1"), []byte(manPage(node, release)), 0o644)
	}
	for _, child := range Shown(node) {
		err = errors.Join(err, writePages(dir, child, release))
	}
	return err
}

// pageName returns the name of a command's page, such as millrace-queues-purge.
func pageName(node *kong.Node) string { return strings.ReplaceAll(Path(node), " ", "-") }

// manPage returns a command's page in the format man(7).
func manPage(node *kong.Node, release string) string {
	m := &manText{}
	m.macro("TH", strings.ToUpper(pageName(node)), "1", "", "millrace "+release, "Millrace")
	m.macro("SH", "NAME")
	m.text(pageName(node) + " - " + firstSentence(node.Help))
	m.macro("SH", "SYNOPSIS")
	m.macro("B", usageOf(node))
	m.macro("SH", "DESCRIPTION")
	m.text(node.Help)
	for _, s := range sections(node) {
		m.macro("SH", strings.ToUpper(strings.TrimSuffix(s.title, ":")))
		for _, row := range s.rows {
			name := strings.TrimSpace(row[0])
			if s.commands {
				name = "millrace " + name
			}
			m.entry(name, row[1])
		}
	}
	if lines := Examples[Names(node)]; len(lines) > 0 {
		m.macro("SH", "EXAMPLES")
		m.macro("EX")
		for _, line := range lines {
			m.text("$ " + line)
		}
		m.macro("EE")
	}
	m.macro("SH", "EXIT STATUS")
	for _, code := range ExitCodes {
		m.entry(code[0], code[1])
	}
	var others []string
	if node.Parent != nil {
		others = append(others, pageName(node.Parent)+"(1)")
	}
	for _, child := range Shown(node) {
		others = append(others, pageName(child)+"(1)")
	}
	m.macro("SH", "SEE ALSO")
	m.text(strings.Join(others, ", "))
	return m.b.String()
}

// ExitCodes are the exit codes of commands, and their meanings.
var ExitCodes = [][2]string{
	{"0", "The command did what it was asked for."},
	{"1", "It could not, it was not confirmed, or a check found something wrong."},
	{"2", "The command line or the configuration is at fault. Nothing was done."},
}

// manText is a page that is being written.
type manText struct{ b strings.Builder }

func (m *manText) macro(name string, arguments ...string) {
	m.b.WriteString("." + name)
	for _, argument := range arguments {
		m.b.WriteString(` "` + roff(argument) + `"`)
	}
	m.b.WriteByte('\n')
}

// text writes a line of text. A line that begins with a dot or a quote would be a macro.
func (m *manText) text(line string) {
	line = roff(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	m.b.WriteString(line + "\n")
}

func (m *manText) entry(name, meaning string) {
	m.macro("TP")
	m.macro("B", name)
	m.text(meaning)
}

// roff returns a text in the form in which troff shows it as it is.
func roff(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`, "\n", " ").Replace(text)
}
