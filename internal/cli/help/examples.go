package help

import (
	_ "embed"
	"strings"
)

//go:embed examples.txt
var examplesText string

// Examples are command lines for each command, as its help and its man page show them. The file has
// a line for each, with the names of the command in front.
var Examples = func() map[string][]string {
	examples := map[string][]string{}
	for line := range strings.Lines(examplesText) {
		names, example, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		examples[names] = append(examples[names], example)
	}
	return examples
}()
