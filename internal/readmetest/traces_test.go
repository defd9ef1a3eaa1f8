package readmetest

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// span is a line that a program writes for a span that has ended.
type span struct {
	Name, Kind, Trace, Span, Parent string
	Links                           []string // trace and span, with a hyphen between them
	Attributes                      map[string]any
	Failed                          bool
}

// A trace leads from a program in one language to a worker in another, as docs/clients.md says:
// into the same trace at the first attempt, and by a link at a retry and at a scheduled job. The
// sidecar publishes these two, so it keeps the header traceparent.
func TestTraces(t *testing.T) {
	s := serve(t)
	for language, c := range map[string]struct {
		enqueue func(*testing.T, *sidecar) *exec.Cmd
		work    func(*testing.T, *sidecar) *exec.Cmd
		error   string
	}{
		"Go to Python":       {enqueueInGo, workInPython, "LookupError"},
		"JavaScript to Java": {enqueueInJavaScript, workInJava, "java.io.IOException"},
	} {
		t.Run(language, func(t *testing.T) {
			queue := strings.ReplaceAll(language, " ", "-")
			traced := func(cmd *exec.Cmd) (*exec.Cmd, string) {
				file := filepath.Join(t.TempDir(), "spans")
				cmd.Env = append(cmd.Env, "QUEUE="+queue, "SPANS="+file)
				return cmd, file
			}
			enqueue, sentFile := traced(c.enqueue(t, s))
			work, ranFile := traced(c.work(t, s))
			start(t, work)
			out, err := enqueue.CombinedOutput()
			require.NoError(t, err, "%s", out)
			brokertest.EventuallyWithin(t, time.Minute, func() bool { return len(spans(t, ranFile)) == 4 }, "three jobs and a retry have run")
			checkTraces(t, queue, c.error, spans(t, sentFile), spans(t, ranFile))
		})
	}
}

// checkTraces checks the spans of a program, which enqueued jobs that run, fail and wait in this
// order, and those of their attempts.
func checkTraces(t *testing.T, queue, errorType string, sent, ran []span) {
	t.Helper()
	require.Len(t, sent, 4)
	attempts := map[any][]span{} // by the jid
	for _, attempt := range ran {
		jid := attempt.Attributes["messaging.message.id"]
		attempts[jid] = append(attempts[jid], attempt)
	}
	request := sent[3]
	for i, want := range [][]bool{{true}, {true, false}, {false}} { // for each attempt, whether it is in the same trace
		publish := sent[i]
		jid := publish.Attributes["messaging.message.id"]
		require.Equal(t, []string{"publish " + queue, "producer"}, []string{publish.Name, strings.ToLower(publish.Kind)})
		require.Equal(t, []string{request.Trace, request.Span}, []string{publish.Trace, publish.Parent})
		shared := map[string]any{
			"messaging.system": "rabbitmq", "messaging.destination.name": queue, "messaging.message.id": jid, "millrace.class": "Order",
		}
		require.Equal(t, with(shared, map[string]any{"messaging.operation.name": "publish", "messaging.operation.type": "send"}), publish.Attributes)

		require.Len(t, attempts[jid], len(want), "attempts of the job %d", i)
		for n, child := range want {
			attempt := attempts[jid][n]
			require.Equal(t, []string{"process " + queue, "consumer"}, []string{attempt.Name, strings.ToLower(attempt.Kind)})
			expected := with(shared, map[string]any{
				"messaging.operation.name": "process", "messaging.operation.type": "process", "millrace.attempt": float64(n + 1),
			})
			if attempt.Failed {
				expected["error.type"] = errorType
			}
			require.Equal(t, expected, attempt.Attributes)
			require.Equal(t, n < len(want)-1, attempt.Failed, "each attempt but the last fails")
			if child {
				require.Equal(t, []string{publish.Trace, publish.Span}, []string{attempt.Trace, attempt.Parent})
				require.Empty(t, attempt.Links)
				continue
			}
			require.NotEqual(t, publish.Trace, attempt.Trace)
			require.Empty(t, attempt.Parent)
			require.Equal(t, []string{publish.Trace + "-" + publish.Span}, attempt.Links)
		}
	}
}

func with(shared, more map[string]any) map[string]any {
	all := maps.Clone(shared)
	maps.Copy(all, more)
	return all
}

// spans returns the spans in a file so far.
func spans(t *testing.T, file string) (found []span) {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") { // it is being written
			break
		}
		var one span
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		found = append(found, one)
	}
	return found
}

func enqueueInGo(t *testing.T, s *sidecar) *exec.Cmd {
	path, err := build("./internal/readmetest/testdata/traces/enqueue.go")
	require.NoError(t, err)
	return s.command(t, path)
}

func enqueueInJavaScript(t *testing.T, s *sidecar) *exec.Cmd {
	prepare(t, "clients/javascript/install")
	return s.command(t, "node", filepath.Join(root, "clients", "javascript", "test", "programs", "traces.mjs"))
}

func workInPython(t *testing.T, s *sidecar) *exec.Cmd {
	client := filepath.Join(root, "clients", "python")
	python := filepath.Join(root, ".cache", "python", "bin", "python")
	require.FileExists(t, python, "make test-python installs it")
	cmd := s.command(t, python, filepath.Join(client, "tests", "programs", "traces.py"))
	cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(client, "src"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

func workInJava(t *testing.T, s *sidecar) *exec.Cmd {
	prepare(t, "clients/java/conformance/build")
	return s.command(t, filepath.Join(root, "clients", "java", "conformance", "traces"))
}
