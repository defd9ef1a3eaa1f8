package readmetest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// guides are the pages of which a test runs or checks every block.
func guides(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md", "docs/without-a-library.md"}
	for _, pattern := range []string{"clients/*/README.md", "docs/tutorials/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			if page := must(filepath.Rel(root, path)); page != "clients/conformance/README.md" {
				pages = append(pages, page)
			}
		}
	}
	require.Len(t, pages, 17)
	return pages
}

// indented are the lines that these pages may indent, and what checks them.
var indented = map[string]string{
	`^ +make `:           "TestCommandsInReadmes",
	`^ +bin/millrace \w`: "TestFlags",
	`[─│┌└]`:             "nothing: it is a drawing",
}

// A block on these pages is fenced, so that a test sees it.
func TestBlocksAreFenced(t *testing.T) {
	used := map[string]bool{}
	for _, page := range guides(t) {
	lines:
		for line := range strings.Lines(fence.ReplaceAllString(document(t, page), "")) {
			if !strings.HasPrefix(line, "    ") {
				continue
			}
			for pattern := range indented {
				if regexp.MustCompile(pattern).MatchString(line) {
					used[pattern] = true
					continue lines
				}
			}
			require.Fail(t, "no test sees an indented block: fence it", "%s: %s", page, line)
		}
	}
	require.Len(t, used, len(indented))
}

// otherCommands are the commands that the READMEs of the clients show without naming a file, and
// that are neither targets of make nor scripts of npm.
var otherCommands = map[string]string{
	"npm ci": "clients/javascript/install runs it",
	"esbuild src/worker.js millrace-thread=millrace-jobs/thread --bundle --platform=node --outdir=dist": "clients/javascript/test/package.test.mjs runs it",
}

// The targets and scripts exist that the pages name in commands which no test runs.
func TestCommandsInReadmes(t *testing.T) {
	targets, scripts := "\n"+document(t, "Makefile"), document(t, "clients/javascript/package.json")
	used := map[string]bool{}
	for _, page := range guides(t) {
		lines := commands(strings.Join(all(`(?m)^    (make .*)$`, document(t, page)), "\n"))
		for _, f := range fragmentsOf(t, page)["sh"] {
			lines = append(lines, commands(f.text)...)
		}
		for _, command := range strings.Split(strings.Join(lines, " && "), " && ") {
			words := strings.Fields(command)
			switch {
			case command == "":
			case otherCommands[command] != "":
				used[command] = true
			case words[0] == "make":
				for _, target := range words[1:] {
					if strings.HasPrefix(target, "ARGS=") {
						break
					}
					require.Regexp(t, `\n`+regexp.QuoteMeta(target)+`:`, targets, "%s: %s", page, command)
				}
			case words[0] == "npm":
				require.True(t, gjson.Get(scripts, "scripts."+words[len(words)-1]).Exists(), "%s: %s", page, command)
			default:
				require.Fail(t, "no test runs this command", "%s: %s", page, command)
			}
		}
	}
	require.Len(t, used, len(otherCommands))
}

// The lines of a worker's log in the READMEs of the clients have the members of such lines in the
// tutorials, whose output is compared with the page.
func TestLogsInReadmes(t *testing.T) {
	checked := 0
	for _, page := range guides(t) {
		for _, f := range fragmentsOf(t, page)["text"] {
			failed := regexp.MustCompile(`millrace: job failed .*\bnext=retry\b.*`)
			tutorial := "docs/tutorials/" + filepath.Base(filepath.Dir(page)) + ".md"
			members := all(`(\w+)=`, failed.FindString(document(t, tutorial)))
			require.NotEmpty(t, members, tutorial)
			shown := all(`(\w+)=`, failed.FindString(f.text))
			require.GreaterOrEqual(t, len(shown), 8, "%s:%d: no test checks this text", page, f.line)
			require.Subset(t, members, shown, "%s:%d", page, f.line)
			checked++
		}
	}
	require.Equal(t, 3, checked)
}
