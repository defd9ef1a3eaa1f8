//go:build schemathesis

package schematest

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// The API answers as its contract says, to an administrator and to a user with the tag monitoring.
// The two run in parallel, because schemathesis takes long. With the same SEED, the requests are
// the same.
func TestSchemathesis(t *testing.T) {
	for _, role := range []string{"administrator", "monitoring"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			url := serve(t, v, role)
			user := v.AddUser(t, role, brokertest.Permissions{Tags: role})
			args := []string{"run", url + "/api/openapi.yaml", "--checks", "all", "-n", setting("EXAMPLES", "200"),
				"--auth", user.Name + ":" + user.Password, "--continue-on-failure", "--request-timeout", "30", "--no-color"}
			if seed := setting("SEED", ""); seed != "" {
				args = append(args, "--seed", seed, "--generation-database", "none")
			}
			st := exec.CommandContext(t.Context(), filepath.Join(root(t), ".cache", "schemathesis", "bin", "schemathesis"), args...)
			st.Dir = filepath.Join(root(t), "internal", "schematest")
			st.Env = append(os.Environ(), fill(t, v, url)...)
			st.Env = append(st.Env, "SCHEMATHESIS_HOOKS=hooks", "PYTHONPATH="+st.Dir, "PYTHONDONTWRITEBYTECODE=1", "PYTHONHASHSEED=0")
			said, err := st.CombinedOutput()
			t.Logf("%s", said)
			require.NoError(t, err)
		})
	}
}

func setting(name, usual string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return usual
}

// serve runs a sidecar until the test ends, and waits until it leads.
func serve(t *testing.T, v *brokertest.Vhost, role string) (url string) {
	t.Helper()
	addr, err := sidecar.FreeAddress()
	require.NoError(t, err)
	binary, err := sidecar.Binary()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--http-addr", addr, "--amqp-url", v.AMQPURL(), "--management-url", v.ManagementURL())
	log, err := os.Create(filepath.Join(os.TempDir(), "millrace-schemathesis-"+role+".log"))
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
