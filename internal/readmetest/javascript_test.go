package readmetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

var javascriptFile = regexp.MustCompile("(?ms)^```js\n(// (\\w+\\.mjs)\n.*?)^```$")

// TestJavaScript runs the example of the JavaScript client as its README shows it, with the package that npm would publish installed into
// an empty project.
func TestJavaScript(t *testing.T) {
	s := serve(t)
	project := t.TempDir()
	npm := func(dir string, args ...string) string {
		cmd := exec.Command("npm", append(args, "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts")...)
		cmd.Dir = dir
		out, err := cmd.Output()
		require.NoError(t, err, "npm %v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	archive := npm(filepath.Join(root, "clients", "javascript"), "pack", "--pack-destination", project)
	npm(project, "install", "--prefer-offline", filepath.Join(project, archive))

	files := javascriptFile.FindAllStringSubmatch(document(t, "clients/javascript/README.md"), -1)
	require.Len(t, files, 2)
	for _, f := range files {
		require.NoError(t, os.WriteFile(filepath.Join(project, f[2]), []byte(f[1]), 0o600))
	}
	out := start(t, s.command(t, "node", filepath.Join(project, "worker.mjs")))
	wrote, err := s.command(t, "node", filepath.Join(project, "enqueue.mjs")).CombinedOutput()
	require.NoError(t, err, "%s", wrote)
	for _, name := range []string{"Ann", "Bob", "Cleo", "Dan", "Eve"} {
		brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "Hello "+name+", attempt 1 of ") }, "%s is greeted", name)
	}
}

// TestJavaScriptHandlerBlocks holds the JavaScript client to what its README says of handlers that block.
func TestJavaScriptHandlerBlocks(t *testing.T) {
	s := serve(t)
	build := exec.Command(filepath.Join(root, "clients", "javascript", "conformance", "build"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = s.command(t, "node", filepath.Join(root, "clients", "javascript", "test", "programs", "blocks.mjs")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ran once")
}
