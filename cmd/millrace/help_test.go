package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// tree is the command tree.
func tree(t *testing.T) *kong.Kong {
	t.Helper()
	var root cli
	parser, err := newParser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	return parser
}

// all are a command and those below it, without the hidden ones.
func all(node *kong.Node) []*kong.Node {
	found := []*kong.Node{node}
	for _, child := range shown(node) {
		found = append(found, all(child)...)
	}
	return found
}

func TestHelpOfEachCommand(t *testing.T) {
	nodes := all(tree(t).Model.Node)
	require.Greater(t, len(nodes), 60)
	used := map[string]bool{}
	for _, node := range nodes {
		names := namesOf(node)
		used[names] = true
		r := millrace(t, append(strings.Fields(names), "--help")...)
		require.Zero(t, r.code, names)
		require.Empty(t, r.err, names)
		require.True(t, strings.HasPrefix(r.out, "Usage: "+pathOf(node)+" "), r.out)
		require.Contains(t, r.out, "\nExample:\n  $ ", names)
		own, connection := strings.Index(r.out, "\nFlags:\n"), strings.Index(r.out, "\nConnection flags:\n")
		require.True(t, connection < 0 || own > 0 && own < connection, "a command's own flags come first: %s", r.out)
		require.True(t, strings.Index(r.out, "\nExample:") < own, names)
		require.Greater(t, strings.Index(r.out, "\nGlobal flags:\n"), max(own, connection), names)
		for line := range strings.Lines(r.out) {
			if !strings.Contains(line, "$ ") && !strings.HasPrefix(line, "Usage") {
				require.LessOrEqual(t, output.Cells(strings.TrimSpace(line)), usualHelp, line)
			}
		}
		if names != "" {
			require.Equal(t, r.out, millrace(t, append([]string{"help"}, strings.Fields(names)...)...).out)
		}
	}
	for names := range examples {
		require.True(t, used[names], "there is no command %q", names)
	}
}

// TestExamplesAreRight has a shell take the examples apart, and millrace read them.
func TestExamplesAreRight(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs.yaml"), nil, 0o600))
	t.Chdir(dir)
	for names, lines := range examples {
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " || ")
			line, _, _ = strings.Cut(line, " > ")
			line = strings.TrimSuffix(strings.TrimPrefix(line, "source <("), ")")
			split, err := exec.Command("sh", "-c", "printf '%s\\n' "+line).Output()
			require.NoError(t, err, line)
			words := strings.Split(strings.TrimRight(string(split), "\n"), "\n")
			require.Equal(t, "millrace", words[0], line)
			command, err := tree(t).Parse(words[1:])
			if err != nil {
				require.ErrorContains(t, err, "/etc/millrace/millrace.yaml", line) // the configuration file of an example
				continue
			}
			require.True(t, names == "" || strings.HasPrefix(namesOf(command.Selected())+" ", names+" "), line)
		}
	}
}

func TestBareMillraceShowsTheHelp(t *testing.T) {
	r := millrace(t)
	require.Zero(t, r.code)
	require.Equal(t, millrace(t, "--help").out, r.out)
	require.Equal(t, millrace(t, "help").out, r.out)
	for _, group := range []string{"\nRun:\n  up ", "\nEnqueue:\n  enqueue ", "\nMonitor:\n  status ", "\nJobs:\n  scheduled ", "\nQueues and workers:\n  queues ", "\nHelp:\n  help "} {
		require.Contains(t, r.out, group)
	}
	require.NotContains(t, r.out, "__complete")
}

func TestHelpOfWhatIsNoCommand(t *testing.T) {
	r := millrace(t, "help", "retrys")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, `did you mean "retries"?`)
	r = millrace(t, "queus")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, `did you mean "queues"?`)
	require.Contains(t, r.err, "(see millrace --help)")
	r = millrace(t, "queues", "purge", "a", "--yess")
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, `did you mean "--yes"?`)
	require.Contains(t, r.err, "(see millrace queues purge --help)")
}

func TestVersionFlag(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"-v"}, {"queues", "--version"}} {
		r := millrace(t, args...)
		require.Zero(t, r.code)
		require.Equal(t, millrace(t, "version").out, r.out)
	}
	require.Regexp(t, `"version": "`, millrace(t, "version", "-o", "json").out)
}

func TestSynonyms(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"items":[]}`)
	for _, line := range []string{"queues ls", "queues get a", "dead ls", "dead rm a -y", "processes ls", "processes get a", "operations ls", "rejected ls", "job get a"} {
		require.Zero(t, millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...).code, line)
	}
}

func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	require.Zero(t, millrace(t, "man", "--dir", dir).code)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.Len(t, pages, len(all(tree(t).Model.Node)))
	page := millrace(t, "man", "queues", "purge").out
	written, err := os.ReadFile(filepath.Join(dir, "millrace-queues-purge.1"))
	require.NoError(t, err)
	require.Equal(t, string(written), page)
	for _, want := range []string{`.TH "MILLRACE\-QUEUES\-PURGE" "1"`, ".SH \"NAME\"\nmillrace\\-queues\\-purge \\- Delete all waiting jobs of a queue\n",
		".B \"millrace queues purge <queue> [flags]\"", ".B \"\\-y, \\-\\-yes\"", "$ millrace queues purge mails \\-\\-yes", ".SH \"EXIT STATUS\"", "millrace\\-queues(1)"} {
		require.Contains(t, page, want)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			require.Regexp(t, `^(\.(TH|SH|TP|B|EX|EE)( "[^"]*")*|[^.'].*)\n$`, line, path)
		}
	}
	require.Equal(t, exitUsage, millrace(t, "man", "nothing").code)
	require.Equal(t, exitFailed, millrace(t, "man", "--dir", clitest.File(t, "")).code)
}

func TestExitCodesAreDocumented(t *testing.T) {
	text := deployed(t, "docs/operating.md")
	for _, code := range exitCodes {
		require.Contains(t, text, "| "+code[0]+" | "+strings.TrimSuffix(strings.ReplaceAll(code[1], "\n", " "), ".")+" |")
	}
}

func TestExitCodes(t *testing.T) {
	good := clitest.NewAPI(t, 200, `{"items":[]}`)
	bad := clitest.NewAPI(t, 404, `{"error":"not_found"}`)
	for line, want := range map[string]int{
		"queues --http-addr " + good.Addr():                  0,
		"queues --http-addr " + bad.Addr():                   exitFailed,
		"queues --http-addr 127.0.0.1:1":                     exitFailed,
		"dead show x --http-addr " + bad.Addr():              exitFailed,
		"queues --nonsense":                                  exitUsage,
		"nonsense":                                           exitUsage,
		"queues -o xml":                                      exitUsage,
		"queues purge":                                       exitUsage,
		"queues purge a --http-addr " + good.Addr():          exitUsage,
		"schedule C --in 5":                                  exitUsage,
		"schedule C --at tomorrow":                           exitUsage,
		"schedule C --in -5s":                                exitUsage,
		"enqueue C {}":                                       exitUsage,
		"enqueue C --priority 11":                            exitUsage,
		"enqueue C --amqp-url http://x":                      exitUsage,
		"enqueue C --amqp-url amqp://127.0.0.1:1/":           exitFailed,
		"dead --from tomorrow --http-addr " + good.Addr():    exitUsage,
		"dead -o csv --page 2 --http-addr " + good.Addr():    exitUsage,
		"jobs --error fp-0f2b7a5c9d8e1a34":                   exitUsage,
		"health luck":                                        exitUsage,
		"events --for ever":                                  exitUsage,
		"up --rate 0":                                        exitUsage,
		"serve --http-addr 0.0.0.0:1":                        exitUsage,
		"serve --dead-age never":                             exitUsage,
		"serve --timeline-retention much":                    exitUsage,
		"worker --exec /nowhere":                             exitUsage,
		"completion tcsh":                                    exitUsage,
		"--config /nowhere queues":                           exitUsage,
		"queues --api-url ftp://x":                           exitUsage,
		"queues --http-addr ::x::":                           exitUsage,
		"processes stop * --http-addr " + good.Addr():        exitUsage,
		"scheduled change a --http-addr " + good.Addr():      exitUsage,
		"queues peek a --count x --http-addr " + good.Addr(): exitUsage,
	} {
		r := millrace(t, strings.Fields(line)...)
		require.Equal(t, want, r.code, "%s: %s", line, r.err)
		if want != 0 {
			require.True(t, strings.HasPrefix(r.err, "millrace: "), line)
		}
	}
}

func TestEmptyListsSayTheSame(t *testing.T) {
	lists := clitest.NewAPI(t, 200, `{"total_count":0,"items":[],"complete":true}`)
	arrays := clitest.NewAPI(t, 200, `[]`)
	for line, a := range map[string]*clitest.API{
		"queues": lists, "processes": lists, "scheduled": lists, "retries": lists, "gated": lists, "dead": lists, "jobs": lists, "journal": lists, "rejected": lists,
		"errors": lists, "due": lists, "attention": lists, "operations": arrays, "deploys": arrays, "queues peek a": arrays,
	} {
		r := millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...)
		require.Equal(t, "none\n", r.out, "%s: %s", line, r.err)
	}
}
