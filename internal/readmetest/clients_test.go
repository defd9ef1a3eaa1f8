package readmetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// TestPythonClient runs the programs of the Python client's README as they are written, in an environment with nothing but its package.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	blocks := readmeBlocks(t, "clients/python/README.md")
	s := serve(t)
	source, env := t.TempDir(), t.TempDir()
	for _, name := range []string{"pyproject.toml", "README.md"} { // a copy, for pip builds where the source is
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(document(t, "clients/python/"+name)), 0o600))
	}
	require.NoError(t, os.CopyFS(filepath.Join(source, "src"), os.DirFS(filepath.Join(root, "clients", "python", "src"))))
	python := filepath.Join(env, "bin", "python")
	run := func(name string, args ...string) {
		t.Helper()
		out, err := s.command(t, name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := func(name string) string {
		require.Contains(t, blocks, name)
		path := filepath.Join(source, name)
		require.NoError(t, os.WriteFile(path, []byte(blocks[name]), 0o600))
		delete(blocks, name)
		return path
	}
	run("python3", "-m", "venv", env)
	run(python, "-m", "pip", "install", "--quiet", source)
	run(python, file("test_greet.py"))
	out := start(t, s.command(t, python, file("worker.py")))
	run(python, file("enqueue.py"))
	for _, name := range []string{"Ann", "Bob", "Cleo", "Dan", "Eve"} {
		brokertest.Eventually(t, func() bool { return strings.Contains(out.String(), "Hello "+name+", attempt 1 of ") }, "%s is greeted", name)
	}
	require.Empty(t, blocks, "blocks that no test runs")
}
