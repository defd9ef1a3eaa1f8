//go:build schemathesis

package schematest

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// TestSchemathesis asks as an administrator, and as somebody who may only look.
func TestSchemathesis(t *testing.T) {
	examples := os.Getenv("EXAMPLES")
	if examples == "" {
		examples = "200"
	}
	for _, role := range []string{"administrator", "monitoring"} {
		t.Run(role, func(t *testing.T) {
			v := brokertest.New(t)
			url := serve(t, v)
			user := v.AddUser(t, role, brokertest.Permissions{Tags: role})
			known := fill(t, v, url)
			st := exec.CommandContext(t.Context(), filepath.Join(root(t), ".cache", "schemathesis", "bin", "schemathesis"), "run", url+"/api/openapi.yaml",
				"--checks", "all", "-n", examples, "--auth", user.Name+":"+user.Password, "--continue-on-failure", "--request-timeout", "30")
			st.Dir = filepath.Join(root(t), "internal", "schematest")
			st.Env = append(os.Environ(), known...)
			st.Env = append(st.Env, "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+st.Dir, "PYTHONDONTWRITEBYTECODE=1")
			st.Stdout, st.Stderr = os.Stdout, os.Stdout
			require.NoError(t, st.Run())
		})
	}
}

// serve runs a sidecar until the test ends, and waits until it leads.
func serve(t *testing.T, v *brokertest.Vhost) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	binary := filepath.Join(t.TempDir(), "millrace")
	build := exec.Command("go", "build", "-o", binary, "./cmd/millrace")
	build.Dir = root(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--http-addr", addr, "--amqp-url", v.AMQPURL(), "--management-url", v.ManagementURL())
	log, err := os.Create(filepath.Join(os.TempDir(), "millrace-schemathesis.log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait()
		require.NoError(t, log.Close())
	})
	url = "http://" + addr
	brokertest.EventuallyWithin(t, time.Minute, func() bool { return strings.Contains(get(t, v, url+"/api/overview"), `"phase":"leading"`) }, "it leads")
	return url
}

func get(t *testing.T, v *brokertest.Vhost, url string) string {
	t.Helper()
	return ask(t, v, http.MethodGet, url, "")
}

// ask sends a request as the virtual host's owner.
func ask(t *testing.T, v *brokertest.Vhost, method, url, body string, headers ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth(v.Owner.Name, v.Owner.Password)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(answer)
}
