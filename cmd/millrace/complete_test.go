package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		"help comp":                    "completion",
		"queues purge -- --y":          "",
		"serve --log-level ":           "debug info warn error",
		"serve --read-only --log-fo":   "--log-format",
		"nonsense ":                    "",
		"worker --exec ":               "",
		"__comp":                       "",
		"--conf":                       "--config",
		"queues purge mails --reason ": "",
	} {
		var found []string
		for _, candidate := range complete(tree(t).Model.Node, strings.Split(line, " ")) {
			found = append(found, candidate[0])
		}
		require.Equal(t, want, strings.Join(found, " "), line)
	}
	r := millrace(t, "__complete", "queues", "pur")
	require.Equal(t, "purge\tDelete all waiting jobs of a queue\n", r.out)
	require.Contains(t, millrace(t, "__complete").out, "queues\t")
}

// TestShellsComplete has each shell that is here run its script.
func TestShellsComplete(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "millrace")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+asMain+"=1 exec "+os.Args[0]+" \"$@\"\n"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
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
