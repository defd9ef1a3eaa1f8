package help_test

import (
	"context"
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
)

func TestMain(m *testing.M) {
	clitest.Init(execute)
	os.Exit(m.Run())
}

// commands are those of package cli, and a flag with values and without.
type commands struct {
	Version kong.VersionFlag `name:"version" short:"v" help:"Print the version."`
	cli.Commands
	Serve struct {
		LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"How much is logged."`
		LogFormat string `enum:"text,json" default:"text" help:"Form of the log."`
		ReadOnly  bool   `help:"Refuse changes."`
	} `cmd:"" help:"Run the sidecar."`
	Worker struct {
		Exec string `required:"" placeholder:"FILE" help:"What to run."`
	} `cmd:"" help:"Run jobs."`
	Help       help.Command    `cmd:"" group:"Help:" help:"Show the help of a command."`
	Completion help.Completion `cmd:"" group:"Help:" help:"Print the completion script for a shell: bash, zsh or fish."`
	Man        help.Man        `cmd:"" group:"Help:" help:"Print a man page, or write one for each command."`
	Complete   help.Complete   `cmd:"" name:"__complete" hidden:"" passthrough:""`
}

func program() cli.Program {
	return cli.Program{Root: func() any { return &commands{} }, Vars: kong.Vars{"version": "millrace v1", "release": "v1"}}
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program().Execute(ctx, args, stdout, stderr)
}

// millrace runs a command line that must succeed.
func millrace(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := clitest.Run(t, execute, args...)
	require.Zero(t, code, err)
	return out
}

func failing(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	code, _, stderr = clitest.Run(t, execute, args...)
	return code, stderr
}

// all returns a command and those below it, without the hidden ones.
func all(node *kong.Node) []*kong.Node {
	found := []*kong.Node{node}
	for _, child := range help.Shown(node) {
		found = append(found, all(child)...)
	}
	return found
}

func tree(t *testing.T) *kong.Node {
	t.Helper()
	parser, err := program().Parser(&commands{}, io.Discard, io.Discard)
	require.NoError(t, err)
	return parser.Model.Node
}

func TestHelpOfEachCommand(t *testing.T) {
	for _, node := range all(tree(t)) {
		names := strings.Fields(help.Names(node))
		out := millrace(t, append(names, "--help")...)
		require.True(t, strings.HasPrefix(out, "Usage: "+help.Path(node)+" "), out)
		if len(names) > 0 {
			require.Equal(t, out, millrace(t, append([]string{"help"}, names...)...))
		}
	}
	code, stderr := failing(t, "help", "retrys")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, `did you mean "retries"?`)
}

func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	millrace(t, "man", "--dir", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	require.Len(t, pages, len(all(tree(t))))
	page := millrace(t, "man", "queues", "purge")
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
	code, _ := failing(t, "man", "nothing")
	require.Equal(t, cli.ExitUsage, code)
	code, _ = failing(t, "man", "--dir", clitest.File(t, ""))
	require.Equal(t, cli.ExitFailed, code)
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"que":                          "queues",
		"queues pu":                    "purge",
		"queues p":                     "pause purge peek",
		"queues purge mails --y":       "--yes",
		"queues ls --st":               "--state",
		"queues --st":                  "--state",
		"dead -o ":                     "table wide json yaml csv ndjson",
		"dead --output=j":              "--output=json",
		"dead --output = j":            "json",
		"dead --output =":              "table wide json yaml csv ndjson",
		"dead --queue mails -o y":      "yaml",
		"dead --queue ":                "",
		"completion ":                  "bash zsh fish",
		"queues move-type mails ":      "classic quorum",
		"operations begin re":          "retry",
		"operations begin retry dead":  "dead-jobs",
		"operations begin kill gated":  "gated-jobs",
		"gated ch":                     "change",
		"health lea":                   "leader",
		"health r":                     "ready",
		"help comp":                    "completion",
		"queues purge -- --y":          "",
		"serve --log-level ":           "debug info warn error",
		"serve --read-only --log-fo":   "--log-format",
		"nonsense ":                    "",
		"worker --exec ":               "",
		"__comp":                       "",
		"--vers":                       "--version",
		"queues purge mails --reason ": "",
	} {
		var found []string
		for candidate := range strings.Lines(millrace(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)) {
			word, _, _ := strings.Cut(strings.TrimSpace(candidate), "\t")
			found = append(found, word)
		}
		require.Equal(t, want, strings.Join(found, " "), line)
	}
	require.Equal(t, "purge\tDelete all waiting jobs of a queue\n", millrace(t, "__complete", "queues", "pur"))
	require.Contains(t, millrace(t, "__complete"), "queues\t")
}

// TestShellsComplete runs the completion script of each shell that is installed.
func TestShellsComplete(t *testing.T) {
	t.Setenv("PATH", clitest.Script(t)+":"+os.Getenv("PATH"))
	tried := 0
	for shell, script := range map[string]string{
		"bash": `source <(millrace completion bash)
			COMP_WORDS=(millrace queues pur); COMP_CWORD=2; _millrace; echo "${COMPREPLY[@]}"
			COMP_WORDS=(millrace dead --output = js); COMP_CWORD=4; _millrace; echo "${COMPREPLY[@]}"
			complete -p millrace`,
		"zsh": `compdef() { echo "compdef $*"; }; _describe() { echo "${(P)2[1]}"; }; _files() { echo files; }
			source <(millrace completion zsh)
			words=(millrace queues pur); CURRENT=3; _millrace
			words=(millrace worker --exec ''); CURRENT=4; _millrace`,
		"fish": `millrace completion fish | source; complete -C 'millrace queues pur'; complete -C 'millrace dead --output=js'`,
	} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		tried++
		said, err := exec.Command(path, "-c", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", shell, said)
		require.Contains(t, string(said), map[string]string{
			"bash": "purge\njson\ncomplete -o default -F _millrace millrace\n",
			"zsh":  "compdef _millrace millrace\npurge:Delete all waiting jobs of a queue\nfiles\n",
			"fish": "purge\tDelete all waiting jobs of a queue\n--output=json\n",
		}[shell])
	}
	require.Positive(t, tried, "bash at least is here")
}
