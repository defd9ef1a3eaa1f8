package readmetest

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

const recipesPage = "docs/delayed-recipes.md"

// TestDramatiqRecipe runs the program for Dramatiq. It needs no plugin.
func TestDramatiqRecipe(t *testing.T) {
	blocks := readmeBlocks(t, recipesPage)
	s := serve(t, "--deliver-to", ".*")
	folder := s.project(t, blocks, "actors.py")
	lines := commands(blocks["dramatiq.sh"])
	require.Len(t, lines, 2)
	run := func(line string) *exec.Cmd {
		cmd := s.inEnvironment(t, folder, "python", line)
		cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(root, "clients", "python", "src"))
		return cmd
	}
	out := start(t, run(lines[0]))
	brokertest.Eventually(t, func() bool { return s.vhost.HasQueue(t, "default") }, "the worker declares its queue")
	wrote, err := run(lines[1]).CombinedOutput()
	require.NoError(t, err, "%s", wrote)
	s.delays(t, out, blocks["actors.py.out"])
}

// inEnvironment returns a command whose programs come first from an environment in .cache.
func (s *sidecar) inEnvironment(t *testing.T, folder, environment, line string) *exec.Cmd {
	t.Helper()
	bin := filepath.Join(root, ".cache", environment, "bin")
	require.DirExists(t, bin, "make test-plugin installs it")
	cmd := s.command(t, "sh", "-c", "exec "+line)
	cmd.Dir = folder
	cmd.Env = append(cmd.Env, "PATH="+bin+":/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// delays waits until a message waits as a scheduled job for five seconds, and until a program has
// printed what the page shows. Its last line must not come early. delays returns the jid of the
// job.
func (s *sidecar) delays(t *testing.T, out *output, printed string) (jid string) {
	t.Helper()
	jid = s.entry(t, "scheduled-jobs", "millrace.Message")
	entry, err := s.request(http.MethodGet, "/api/scheduled-jobs/"+jid)
	require.NoError(t, err)
	due := gjson.Get(entry, "scheduled_at").Float()
	require.InDelta(t, 5, due-gjson.Get(entry, "job.created_at").Float(), 1, entry)

	lines := strings.Split(strings.TrimSpace(printed), "\n")
	last := lines[len(lines)-1]
	for deadline := time.Now().Add(time.Minute); !strings.Contains(out.String(), last); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "%q was not printed:\n%s", last, out)
	}
	require.GreaterOrEqual(t, float64(time.Now().UnixMicro())/1e6, due, "the message came early")
	for _, line := range lines {
		require.Equal(t, 1, strings.Count(out.String(), line), "%q:\n%s", line, out)
	}
	return jid
}
