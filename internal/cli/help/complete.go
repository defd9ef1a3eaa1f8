package help

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// Completion is the command completion.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script with which a shell completes command lines.
func (c *Completion) Run(out output.Streams) error {
	script, err := scripts.ReadFile("completion/millrace." + c.Shell)
	if err != nil {
		return err
	}
	_, err = out.Out.Write(script)
	return err
}

// scripts have the shells ask the program. If it has nothing to offer, they offer files.
//
//go:embed completion
var scripts embed.FS

// Complete is the hidden command that the scripts of Completion call.
type Complete struct {
	Words []string `arg:"" optional:""`
}

// Run prints the candidates for the last word, one a line, with their meanings behind a tab.
func (c *Complete) Run(out output.Streams, k *kong.Context) error {
	at, current := &typed{node: k.Model.Node}, ""
	if n := len(c.Words); n > 0 {
		for _, word := range c.Words[:n-1] {
			at.read(word)
		}
		current = c.Words[n-1]
	}
	if current == "=" { // bash takes --flag=value apart
		current = ""
	}
	for _, candidate := range at.candidates(current) {
		if _, err := fmt.Fprintln(out.Out, strings.TrimRight(candidate[0]+"\t"+candidate[1], "\t")); err != nil {
			return err
		}
	}
	return nil
}

// typed is the state after the words so far.
type typed struct {
	node      *kong.Node
	arguments int        // how many are given
	expects   *kong.Flag // whose value comes next
	only      bool       // only arguments follow
}

func (t *typed) read(word string) {
	switch {
	case word == "=":
	case t.expects != nil:
		t.expects = nil
	case word == "--":
		t.only = true
	case strings.HasPrefix(word, "-") && len(word) > 1 && !t.only:
		name, _, whole := strings.Cut(word, "=")
		if flag := t.flag(name); flag != nil && !flag.IsBool() && !whole {
			t.expects = flag
		}
	default:
		for _, child := range t.node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				t.node = child
				return
			}
		}
		t.arguments++
	}
}

// flags returns the flags that may be given here.
func (t *typed) flags() (all []*kong.Flag) {
	if t.node.DefaultCmd != nil {
		all = append(all, t.node.DefaultCmd.Flags...)
	}
	for _, group := range flagGroups(t.node) {
		all = append(all, group.flags...)
	}
	return all
}

func (t *typed) flag(name string) *kong.Flag {
	for _, flag := range t.flags() {
		if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

func (t *typed) candidates(current string) (found [][2]string) {
	offer := func(word, meaning string) {
		if strings.HasPrefix(word, current) {
			found = append(found, [2]string{word, meaning})
		}
	}
	values := func(before string, v *kong.Value) {
		for _, value := range v.EnumSlice() {
			if value != "" {
				offer(before+value, "")
			}
		}
	}
	if t.expects != nil {
		values("", t.expects.Value)
		return found
	}
	if name, _, whole := strings.Cut(current, "="); whole && strings.HasPrefix(current, "-") && !t.only {
		if flag := t.flag(name); flag != nil {
			values(name+"=", flag.Value)
		}
		return found
	}
	if strings.HasPrefix(current, "-") && !t.only {
		for _, flag := range t.flags() {
			offer("--"+flag.Name, firstSentence(flag.Help))
		}
		return found
	}
	if t.arguments == 0 {
		for _, child := range Shown(t.node) {
			offer(child.Name, firstSentence(child.Help))
		}
	}
	positional := t.node.Positional
	if t.node.DefaultCmd != nil {
		positional = t.node.DefaultCmd.Positional
	}
	if t.arguments < len(positional) {
		values("", positional[t.arguments])
	}
	if t.node.Name == "help" {
		inner := &typed{node: t.node.Parent}
		return inner.candidates(current)
	}
	return found
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}
