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

	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/help"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// tree is the command tree.
func tree(t *testing.T) *kong.Kong {
	t.Helper()
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	return parser
}

// all returns a command and those below it, without the hidden ones.
func all(node *kong.Node) []*kong.Node {
	found := []*kong.Node{node}
	for _, child := range help.Shown(node) {
		found = append(found, all(child)...)
	}
	return found
}

func TestHelpOfEachCommand(t *testing.T) {
	nodes := all(tree(t).Model.Node)
	require.Greater(t, len(nodes), 60)
	used := map[string]bool{}
	for _, node := range nodes {
		names := help.Names(node)
		used[names] = true
		r := millrace(t, append(strings.Fields(names), "--help")...)
		require.Zero(t, r.code, names)
		require.Empty(t, r.err, names)
		require.True(t, strings.HasPrefix(r.out, "Usage: "+help.Path(node)+" "), r.out)
		require.Contains(t, r.out, "\nExample:\n  $ ", names)
		own, connection := strings.Index(r.out, "\nFlags:\n"), strings.Index(r.out, "\nConnection flags:\n")
		require.True(t, connection < 0 || own > 0 && own < connection, "a command's own flags come first: %s", r.out)
		require.True(t, strings.Index(r.out, "\nExample:") < own, names)
		require.Greater(t, strings.Index(r.out, "\nGlobal flags:\n"), max(own, connection), names)
		for line := range strings.Lines(r.out) {
			if !strings.Contains(line, "$ ") && !strings.HasPrefix(line, "Usage") {
				require.LessOrEqual(t, output.Cells(strings.TrimSpace(line)), 100, line)
			}
		}
		if names != "" {
			require.Equal(t, r.out, millrace(t, append([]string{"help"}, strings.Fields(names)...)...).out)
		}
	}
	for names := range help.Examples {
		require.True(t, used[names], "there is no command %q", names)
	}
}

// TestExamplesAreValid has a shell split the examples, and millrace parse them.
func TestExamplesAreValid(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs.yaml"), nil, 0o600))
	t.Chdir(dir)
	for names, lines := range help.Examples {
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
			require.True(t, names == "" || strings.HasPrefix(help.Names(command.Selected())+" ", names+" "), line)
		}
	}
}

func TestMillraceWithoutArgumentsShowsHelp(t *testing.T) {
	r := millrace(t)
	require.Zero(t, r.code)
	require.Equal(t, millrace(t, "--help").out, r.out)
	require.Equal(t, millrace(t, "help").out, r.out)
	for _, group := range []string{"\nRun:\n  up ", "\nEnqueue:\n  enqueue ", "\nMonitor:\n  status ", "\nJobs:\n  scheduled ", "\nQueues and workers:\n  queues ", "\nHelp:\n  help "} {
		require.Contains(t, r.out, group)
	}
	require.NotContains(t, r.out, "__complete")
}

func TestHelpOfUnknownCommand(t *testing.T) {
	r := millrace(t, "help", "retrys")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, `did you mean "retries"?`)
	r = millrace(t, "queus")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, `did you mean "queues"?`)
	require.Contains(t, r.err, "(see millrace --help)")
	r = millrace(t, "queues", "purge", "a", "--yess")
	require.Equal(t, cli.ExitUsage, r.code)
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

func TestExitCodesAreDocumented(t *testing.T) {
	text := deployed(t, "docs/commands.md")
	for _, code := range help.ExitCodes {
		require.Contains(t, text, "| "+code[0]+" | "+strings.TrimSuffix(strings.ReplaceAll(code[1], "\n", " "), ".")+" |")
	}
}

func TestExitCodes(t *testing.T) {
	good := clitest.NewAPI(t, 200, `{"items":[]}`)
	bad := clitest.NewAPI(t, 404, `{"error":"not_found"}`)
	for line, want := range map[string]int{
		"queues --http-addr " + good.Addr():                  0,
		"queues --http-addr " + bad.Addr():                   cli.ExitFailed,
		"queues --http-addr 127.0.0.1:1":                     cli.ExitFailed,
		"dead show x --http-addr " + bad.Addr():              cli.ExitFailed,
		"queues --nonsense":                                  cli.ExitUsage,
		"nonsense":                                           cli.ExitUsage,
		"queues -o xml":                                      cli.ExitUsage,
		"queues purge":                                       cli.ExitUsage,
		"queues purge a --http-addr " + good.Addr():          cli.ExitUsage,
		"schedule C --in 5":                                  cli.ExitUsage,
		"schedule C --at tomorrow":                           cli.ExitUsage,
		"schedule C --in -5s":                                cli.ExitUsage,
		"enqueue C {}":                                       cli.ExitUsage,
		"enqueue C --priority 11":                            cli.ExitUsage,
		"enqueue C --amqp-url http://x":                      cli.ExitUsage,
		"enqueue C --amqp-url amqp://127.0.0.1:1/":           cli.ExitFailed,
		"dead --from tomorrow --http-addr " + good.Addr():    cli.ExitUsage,
		"dead -o csv --page 2 --http-addr " + good.Addr():    cli.ExitUsage,
		"jobs --error fp-0f2b7a5c9d8e1a34":                   cli.ExitUsage,
		"health luck":                                        cli.ExitUsage,
		"events --for ever":                                  cli.ExitUsage,
		"up --rate 0":                                        cli.ExitUsage,
		"serve --http-addr 0.0.0.0:1":                        cli.ExitUsage,
		"serve --dead-age never":                             cli.ExitUsage,
		"serve --timeline-retention much":                    cli.ExitUsage,
		"worker --exec /nowhere":                             cli.ExitUsage,
		"completion tcsh":                                    cli.ExitUsage,
		"--config /nowhere queues":                           cli.ExitUsage,
		"queues --api-url ftp://x":                           cli.ExitUsage,
		"queues --http-addr ::x::":                           cli.ExitUsage,
		"processes stop * --http-addr " + good.Addr():        cli.ExitUsage,
		"scheduled change a --http-addr " + good.Addr():      cli.ExitUsage,
		"queues peek a --count x --http-addr " + good.Addr(): cli.ExitUsage,
	} {
		r := millrace(t, strings.Fields(line)...)
		require.Equal(t, want, r.code, "%s: %s", line, r.err)
		if want != 0 {
			require.True(t, strings.HasPrefix(r.err, "millrace: "), line)
		}
	}
}
