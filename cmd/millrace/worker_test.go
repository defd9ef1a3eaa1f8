package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func plan(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestWorkerChecksItsFile(t *testing.T) {
	good := plan(t, "classes: {A: {command: [\"true\"]}}")
	r := millrace(t, "worker", "--check", "--exec", good)
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "1 classes")
	for text, want := range map[string]string{"classes: {}": "no classes", "queues: {a: 0}\nclasses: {A: {shell: x}}": "weight 0"} {
		r := millrace(t, "worker", "--exec", plan(t, text))
		require.NotZero(t, r.code)
		require.Contains(t, r.err, want)
	}
}

func TestWorkerRunsCommands(t *testing.T) {
	v := brokertest.New(t)
	dir := t.TempDir()
	file := plan(t, "queues: [default]\nclasses: {Keep: {shell: 'cat > kept.new && mv kept.new kept', dir: "+dir+"}, Fail: {shell: exit 3}}")
	cmd := clitest.Process(t, "worker", "--exec", file, "--amqp-url", v.AMQPURL())
	var log clitest.Buffer
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	ch := v.Channel(t)
	brokertest.Eventually(t, func() bool {
		_, err := v.Channel(t).QueueDeclarePassive("queue.default", true, false, false, false, nil)
		return err == nil
	}, "it declares its queue")
	require.NoError(t, ch.Publish("", "queue.default", false, false, amqp.Publishing{Body: []byte(`{"jid":"keep-1","class":"Keep","args":[1.0,"x"]}`)}))
	brokertest.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "kept"))
		return err == nil && strings.TrimSpace(string(text)) == `[1.0,"x"]`
	}, "the command gets the args")
	require.NoError(t, ch.Publish("", "queue.default", false, false, amqp.Publishing{Body: []byte(`{"jid":"fail-1","class":"Fail","args":[],"retry":0}`)}))
	for _, line := range []string{
		`level=INFO msg="millrace: job started" class=Keep jid=keep-1 queue=default attempt=1`,
		`level=INFO msg="millrace: job done" class=Keep jid=keep-1 queue=default attempt=1 took=\S+`,
		`level=INFO msg="millrace: job started" class=Fail jid=fail-1`,
		`level=WARN msg="millrace: job failed" class=Fail jid=fail-1 .*exit status 3`,
	} {
		brokertest.Eventually(t, func() bool { return regexpMatch(line, log.String()) }, "the log has %s", line)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTSTP))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}
