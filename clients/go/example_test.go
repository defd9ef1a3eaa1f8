package millrace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// TestReadme runs what README shows, from a module of its own that requires this one from its folder.
func TestReadme(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.NoError(t, ch.ExchangeDeclare("jobs.direct", "direct", true, false, false, false, nil))
	_, err := ch.QueueDeclare("queue.default", true, false, false, false, map[string]any{"x-max-priority": 10})
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("queue.default", "default", "jobs.direct", false, nil))

	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(text), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	// The versions that this module requires are at hand.
	mine := strings.Replace(string(mod), "module github.com/millrace-jobs/millrace", "module example.com/app", 1) +
		"\nrequire github.com/millrace-jobs/millrace v0.0.0\nreplace github.com/millrace-jobs/millrace => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mine), 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600))
	cmd := exec.CommandContext(t.Context(), "go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MILLRACE_AMQP_URL="+v.AMQPURL(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "sending to ann@example.com: Hello!")
}
