package spectest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// sidecar is a `millrace serve` for one test.
type sidecar struct {
	*process
	url     string
	http    *http.Client
	stopped bool
}

var servesAt = regexp.MustCompile(`api=(http://\S+)`)

// serve starts a sidecar for a virtual host and waits until it leads.
func serve(t *testing.T, v *brokertest.Vhost) *sidecar {
	t.Helper()
	s := launch(t, v)
	brokertest.Eventually(t, func() bool {
		return s.get(t, "/api/overview").Get("scheduler.phase").String() == "leading"
	}, "the sidecar leads")
	return s
}

// launch starts a sidecar and waits until its API answers.
func launch(t *testing.T, v *brokertest.Vhost) *sidecar {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary(t, "millrace", "../../cmd/millrace"), "serve", "--http-addr=127.0.0.1:0", "--auth=none")
	cmd.Env = append(os.Environ(),
		"MILLRACE_AMQP_URL="+v.AMQPURL(), "MILLRACE_MANAGEMENT_URL="+v.ManagementURL(), "MILLRACE_STREAM_URL="+v.StreamURL())
	s := &sidecar{process: start(t, "the sidecar", cmd), http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.http.CloseIdleConnections)
	s.says(t, "api=http://")
	s.url = servesAt.FindStringSubmatch(s.said())[1]
	t.Cleanup(func() {
		if !t.Failed() && !s.stopped {
			s.stop(t)
		}
	})
	return s
}

// stop asks the sidecar to end. Before that, it checks that no record was rejected.
func (s *sidecar) stop(t *testing.T) {
	t.Helper()
	require.Empty(t, s.get(t, "/api/rejected").Array(), "records that the sidecar could not read")
	s.stopped = true
	s.process.stop(t)
}

// do sends a request, and returns the status and the body of the answer.
func (s *sidecar) do(t *testing.T, method, path string) (int, []byte) {
	t.Helper()
	// It must also work after the test's context has ended.
	req, err := http.NewRequest(method, s.url+path, http.NoBody)
	require.NoError(t, err)
	resp, err := s.http.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, body
}

// get requests something that must exist.
func (s *sidecar) get(t *testing.T, path string) gjson.Result {
	t.Helper()
	status, body := s.do(t, http.MethodGet, path)
	require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
	return gjson.ParseBytes(bytes.TrimSpace(body))
}

// post performs an action on an entry.
func (s *sidecar) post(t *testing.T, format string, args ...any) {
	t.Helper()
	path := fmt.Sprintf(format, args...)
	status, body := s.do(t, http.MethodPost, path)
	require.Equal(t, http.StatusNoContent, status, "%s: %s", path, body)
}

// entries waits until a set has n entries of a class, and returns them.
func (s *sidecar) entries(t *testing.T, n int, set, class string) []gjson.Result {
	t.Helper()
	var found []gjson.Result
	brokertest.Eventually(t, func() bool {
		found = s.get(t, "/api/"+set+"?class="+class).Array()
		return len(found) == n
	}, "%d of %s in %s", n, class, set)
	return found
}

// entry waits for the only entry of a class in a set, and returns it.
func (s *sidecar) entry(t *testing.T, set, class string) gjson.Result {
	t.Helper()
	return s.entries(t, 1, set, class)[0]
}

// holds waits until a set has an entry with the jid, and returns its bytes.
func (s *sidecar) holds(t *testing.T, set, jid string) string {
	t.Helper()
	var found string
	brokertest.Eventually(t, func() bool {
		status, body := s.do(t, http.MethodGet, "/api/"+set+"/"+jid)
		found = strings.TrimSpace(string(body))
		return status == http.StatusOK
	}, "%s in %s", jid, set)
	return found
}
