package readmetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	sidecars "github.com/millrace-jobs/millrace/internal/sidecar"
)

// built is the directory with the programs that were built for the tests.
var built string

func TestMain(m *testing.M) {
	built = must(os.MkdirTemp("", "millrace-readme-"))
	brokertest.Main(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built)
		os.Exit(code)
	}))
}

// build compiles a command or a Go file, and returns the path of the program.
func build(what string) (string, error) {
	program := filepath.Join(built, strings.TrimSuffix(filepath.Base(what), ".go"))
	compile := exec.Command("go", "build", raceFlag, "-o", program, what)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", what, err, out)
	}
	return program, nil
}

var millrace = sync.OnceValues(func() (string, error) { return build("./cmd/millrace") })

// program returns the path of the built millrace.
func program(t *testing.T) string {
	t.Helper()
	path, err := millrace()
	require.NoError(t, err)
	return path
}

// sidecar is a `millrace serve` with its own virtual host.
type sidecar struct {
	vhost *brokertest.Vhost
	addr  string
	// bin is the directory with bin/millrace in which commands run.
	bin     string
	cookies http.CookieJar // of users that sign in like a browser
}

func serve(t *testing.T, flags ...string) *sidecar {
	t.Helper()
	return serveOn(t, brokertest.New(t), flags...)
}

func serveOn(t *testing.T, vhost *brokertest.Vhost, flags ...string) *sidecar {
	t.Helper()
	cookies, err := cookiejar.New(nil)
	require.NoError(t, err)
	s := &sidecar{vhost: vhost, addr: freeAddr(t), bin: t.TempDir(), cookies: cookies}
	require.NoError(t, os.Mkdir(filepath.Join(s.bin, "bin"), 0o755))
	require.NoError(t, os.Symlink(program(t), filepath.Join(s.bin, "bin", "millrace")))
	start(t, s.command(t, program(t), append([]string{"serve"}, flags...)...))
	brokertest.Eventually(t, func() bool {
		body, err := s.get("/api/overview")
		return err == nil && strings.Contains(body, `"phase":"leading"`)
	}, "the sidecar leads")
	brokertest.Eventually(t, func() bool {
		var exchange struct{ Policy string }
		s.vhost.Do(t, http.MethodGet, "/api/exchanges/"+s.vhost.Name+"/jobs.direct", nil, &exchange)
		return exchange.Policy != ""
	}, "jobs for undeclared queues are kept")
	return s
}

// command returns a program with this sidecar and its broker in its environment.
func (s *sidecar) command(t *testing.T, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = s.bin
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "MILLRACE_") {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	cmd.Env = append(cmd.Env, "MILLRACE_HTTP_ADDR="+s.addr, "MILLRACE_AMQP_URL="+s.vhost.AMQPURL(),
		"MILLRACE_MANAGEMENT_URL="+s.vhost.ManagementURL())
	return cmd
}

func (s *sidecar) get(path string) (string, error) { return s.request(http.MethodGet, path) }

func (s *sidecar) request(method, path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequest(method, "http://"+s.addr+path, http.NoBody)
	if err != nil {
		return "", err
	}
	req.SetBasicAuth(s.vhost.Owner.Name, s.vhost.Owner.Password)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %d", method, path, resp.StatusCode)
	}
	return string(body), err
}

// entry waits until a set has an entry of a class, and returns its jid.
func (s *sidecar) entry(t *testing.T, set, class string) (jid string) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		body, err := s.get("/api/" + set + "?class=" + class)
		var items []struct{ JID string }
		if err != nil || json.Unmarshal([]byte(body), &items) != nil || len(items) == 0 {
			return false
		}
		jid = items[0].JID
		return true
	}, "%s has an entry of class %s", set, class)
	return jid
}

// output is the output of a program so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs a program until the test ends.
func start(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	return startWith(t, cmd, cmd.Start)
}

// startWith starts a program with begin.
func startWith(t *testing.T, cmd *exec.Cmd, begin func() error) *output {
	t.Helper()
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, begin())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		err := <-ended // the test's context has ended, and with it the program
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", filepath.Base(cmd.Path), err)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", strings.Join(cmd.Args, " "), out)
		}
	})
	return out
}

// freeAddr returns a free address of 127.0.0.1.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := sidecars.FreeAddress()
	require.NoError(t, err)
	return addr
}
