package readmetest

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pages of the wire format have each command, each type of record and each op of the journal.
func TestWireNames(t *testing.T) {
	commands, journal := document(t, "docs/wire-format/commands.md"), document(t, "docs/wire-format/journal.md")
	found := map[string]int{}
	for name, value := range stringConstants(t, "wire") {
		for prefix, page := range map[string]string{"Command": commands, "Type": journal, "Op": journal} {
			if rest, is := strings.CutPrefix(name, prefix); !is || rest == "" || rest[0] < 'A' || rest[0] > 'Z' {
				continue
			}
			found[prefix]++
			require.Regexp(t, "`"+value+"[`.(]|\"type\": \""+value+"\"", page, "the wire format has no %s %q", strings.ToLower(prefix), value)
		}
	}
	require.Greater(t, found["Command"], 15)
	require.Greater(t, found["Type"], 20)
	require.Greater(t, found["Op"], 5)
}

// stringConstants returns the constants of a package whose values are literals.
func stringConstants(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range goFiles(t, token.NewFileSet(), folder) {
		ast.Inspect(file, func(node ast.Node) bool {
			spec, is := node.(*ast.ValueSpec)
			if !is || len(spec.Names) != 1 || len(spec.Values) != 1 {
				return true
			}
			if literal, is := spec.Values[0].(*ast.BasicLit); is && literal.Kind == token.STRING {
				found[spec.Names[0].Name] = must(strconv.Unquote(literal.Value))
			}
			return true
		})
	}
	return found
}

// docs/commands.md has each command that the help lists.
func TestCommandsAreDocumented(t *testing.T) {
	page := document(t, "docs/commands.md")
	listed := all(`(?m)^  (\w+)  `, help(t))
	require.Greater(t, len(listed), 20)
	for _, command := range listed {
		require.Contains(t, page, "`millrace "+command, "docs/commands.md does not have this command")
	}
}
