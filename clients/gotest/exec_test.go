package gotest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/clients/go/execjobs"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// startPlan runs a worker of that plan until the test ends, and waits until it consumes queues.
func startPlan(t *testing.T, v *brokertest.Vhost, text string, queues ...string) {
	t.Helper()
	topology(t, v)
	plan, err := execjobs.Read(strings.NewReader(text))
	require.NoError(t, err)
	w, err := plan.Worker(v.AMQPURL(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	for _, queue := range queues {
		brokertest.Eventually(t, func() bool {
			q, err := v.Channel(t).QueueDeclarePassive("queue."+queue, true, false, false, false, nil)
			return err == nil && q.Consumers > 0
		}, "it works on %s", queue)
	}
}

func put(t *testing.T, v *brokertest.Vhost, queue string, jobs ...string) {
	t.Helper()
	for _, job := range jobs {
		v.Publish(t, "", "queue."+queue, amqp.Publishing{Body: []byte(job), Headers: amqp.Table{"traceparent": "00-1-2-01"}})
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	dir := t.TempDir()
	startPlan(t, v, `
queues: [default]
lanes: {heavy: {queues: {heavy: 1}, concurrency: 1}}
stop_timeout: 1s
classes:
  Keep: {command: [sh, -c, 'cat > "$MILLRACE_JID"; echo "$MILLRACE_CLASS $MILLRACE_QUEUE $MILLRACE_ATTEMPT $TRACEPARENT $EXTRA" > env'], dir: "`+dir+`", env: {EXTRA: more}}
  Shell: {shell: 'cat > shell; echo $$ >> shell', dir: "`+dir+`"}
  Fail: {shell: 'echo first; echo "it broke: $((1+1))" >&2; exit 3', retry_in: 90s}
  Quiet: {command: ["false"]}
  Missing: {command: [/no/such/command]}
  Drop: {shell: exit 10, discard: [10], kill: [11]}
  Give: {shell: exit 11, discard: [10], kill: [11]}
  Slow: {shell: 'sleep 60 & wait', timeout: 100ms}
  Daemon: {shell: 'sleep 100 & echo $! > daemon', dir: "`+dir+`"}
  Long: {shell: 'yes | head -c 100000; exit 1'}
`, "default", "heavy")
	put(t, v, "default", `{"jid":"keep","class":"Keep","args":[1.0, "a;rm -rf /", 12345678901234567890]}`)
	has := func(file, text string) {
		t.Helper()
		brokertest.Eventually(t, func() bool {
			got, err := os.ReadFile(filepath.Join(dir, file))
			return err == nil && strings.HasPrefix(string(got), text)
		}, "%s says %s", file, text)
	}
	has("env", "Keep default 1 00-1-2-01 more\n")
	has("keep", `[1.0, "a;rm -rf /", 12345678901234567890]`)
	put(t, v, "heavy", `{"jid":"shell","class":"Shell"}`)
	has("shell", "[]")

	put(t, v, "default", `{"jid":"fail","class":"Fail"}`, `{"jid":"quiet","class":"Quiet"}`, `{"jid":"missing","class":"Missing"}`,
		`{"jid":"drop","class":"Drop"}`, `{"jid":"give","class":"Give"}`, `{"jid":"slow","class":"Slow"}`, `{"jid":"long","class":"Long"}`,
		`{"jid":"daemon","class":"Daemon"}`)
	fail := recordOf(t, v, wire.Retries, "fail")
	require.Equal(t, "ExecError", fail.Get("error_class").String())
	require.Equal(t, "exit status 3\nfirst\nit broke: 2", fail.Get("error_message").String())
	require.InDelta(t, 90, fail.Get("retry_at").Float()-fail.Get("failed_at").Float(), 0.01)
	require.Equal(t, "exit status 1", recordOf(t, v, wire.Retries, "quiet").Get("error_message").String())
	require.Contains(t, recordOf(t, v, wire.Retries, "missing").Get("error_message").String(), "no such file")
	require.Equal(t, "Timeout", recordOf(t, v, wire.Retries, "slow").Get("error_class").String())
	require.Equal(t, "killed", recordOf(t, v, wire.DeadJobs, "give").Get("reason").String())
	require.Less(t, len(recordOf(t, v, wire.Retries, "long").Get("error_message").String()), 9000)
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 0 }, "all are done")
	require.Equal(t, "discarded", metricOf(t, v, "drop").Get("status").String())
	require.Equal(t, "success", metricOf(t, v, "daemon").Get("status").String())
	killDaemon(t, filepath.Join(dir, "daemon"))
	put(t, v, "default", `{"jid":"handed back","class":"Slow","timeout":60}`)
}

// killDaemon kills a process that a command left behind, whose job has succeeded.
func killDaemon(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}
