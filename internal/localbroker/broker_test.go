package localbroker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/millrace-jobs/millrace/internal/pause"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		helper(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, cfg Config) *Broker {
	t.Helper()
	b, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop(context.Background())) })
	return b
}

// channel opens a channel on a connection that is closed at the end of the test.
func channel(t *testing.T, b *Broker) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(b.AMQPURL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	return ch
}

func put(t *testing.T, b *Broker, queue, body string) {
	t.Helper()
	ch := channel(t, b)
	_, err := ch.QueueDeclare(queue, true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	confirm, err := ch.PublishWithDeferredConfirmWithContext(t.Context(), "", queue, false, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte(body)})
	require.NoError(t, err)
	ok, err := confirm.WaitContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
}

func stream(t *testing.T, b *Broker, name string) {
	t.Helper()
	_, err := channel(t, b).QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
	require.NoError(t, err)
}

func requireReadable(t *testing.T, b *Broker, stream string) {
	t.Helper()
	conn, err := amqp.Dial(b.AMQPURL())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	for until := time.Now().Add(3 * time.Minute); ; { // a busy machine needs more than one try
		ch, err := conn.Channel()
		require.NoError(t, err)
		require.NoError(t, ch.Qos(1, 0, false))
		if _, err = ch.Consume(stream, "", false, false, false, false, nil); err == nil {
			return
		}
		require.True(t, time.Now().Before(until), "%s was forgotten: %v", stream, err)
		require.NoError(t, pause.For(t.Context(), 100*time.Millisecond))
	}
}

func requireGet(t *testing.T, b *Broker, queue, body string) {
	t.Helper()
	d, ok, err := channel(t, b).Get(queue, true)
	require.NoError(t, err)
	require.True(t, ok, "%s is empty", queue)
	require.Equal(t, body, string(d.Body))
}

// The data of a node survives a crash, an orderly stop and a move to other ports.
func TestLife(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	first := b.Pid()
	put(t, b, "crash", "one")
	put(t, b, "stop", "two")
	stream(t, b, "stream")
	// If a node of RabbitMQ 3.10 is killed before the stream has a file, it can never open the
	// stream again.
	requireReadable(t, b, "stream")

	exited := b.Exited()
	require.NoError(t, b.Kill())
	<-exited
	requireGone(t, first)
	require.ErrorContains(t, b.Kill(), "not running")
	require.NoError(t, b.Restart(t.Context()))
	require.NotEqual(t, first, b.Pid())
	requireGet(t, b, "crash", "one")
	requireReadable(t, b, "stream")
	require.ErrorContains(t, b.Restart(t.Context()), "already running")

	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.Stop(t.Context()), "stopping twice")
	require.False(t, b.epmd.alive())

	port, err := FreePort(b.ports.amqp + 1)
	require.NoError(t, err)
	moved := start(t, Config{Dir: dir, AMQPPort: port})
	require.Contains(t, moved.AMQPURL(), fmt.Sprint(port))
	requireGet(t, moved, "stop", "two")
	requireReadable(t, moved, "stream")
}

// These tests share one node, because each start takes seconds. The last one stops it.
func TestOneNode(t *testing.T) {
	b := start(t, Config{Dir: t.TempDir()})
	t.Run("modules that are loaded in one step", func(t *testing.T) { testPreload(t, b) })
	t.Run("restart of the application alone", func(t *testing.T) { testStopApp(t, b) })
	t.Run("privacy", func(t *testing.T) { testPrivacy(t, b) })
	t.Run("a stream that does not work", func(t *testing.T) { testProbe(t, b) })
	t.Run("waiting until it is ready", func(t *testing.T) { testWaitReady(t, b) })
}

// Most modules are loaded in one step, and not when RabbitMQ looks for each.
func testPreload(t *testing.T, b *Broker) {
	out, err := b.Eval(t.Context(), "{persistent_term:get(localbroker_preloaded, 0), length([M || {M, F} <- code:all_loaded(), is_list(F)])}.")
	require.NoError(t, err)
	var preloaded, all int
	_, err = fmt.Sscanf(out, "{%d,%d}", &preloaded, &all)
	require.NoError(t, err, out)
	require.Greater(t, preloaded, all*3/4, out)
}

func testStopApp(t *testing.T, b *Broker) {
	pid := b.Pid()
	put(t, b, "kept", "x")
	require.NoError(t, b.StopApp(t.Context()))
	_, err := amqp.Dial(b.AMQPURL())
	require.Error(t, err)
	require.NoError(t, b.StartApp(t.Context()))
	require.Equal(t, pid, b.Pid())
	requireGet(t, b, "kept", "x")

	out, err := b.Eval(t.Context(), "node().")
	require.NoError(t, err)
	require.Equal(t, nodeName, out)
	out, err = b.Eval(t.Context(), "{ok, Name} = inet:gethostname(), [A || {host, A, Names} <- inet:get_rc(), lists:member(Name, Names)].")
	require.NoError(t, err)
	require.Equal(t, "[{127,0,0,1}]", out, "it knows the machine's name by itself")
	_, err = b.Eval(t.Context(), "this is not Erlang")
	require.ErrorContains(t, err, "rabbitmqctl eval")
	for _, call := range []string{b.tools.call, ""} { // with erl_call, and without
		b.tools.call = call
		require.NoError(t, b.run(t.Context(), "ok."))
		require.Error(t, b.run(t.Context(), "this is not Erlang"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.Eval(ctx, "ok.")
	require.ErrorIs(t, err, context.Canceled)
}

// Only one node can use a directory, and everything listens on the loopback interface.
func testPrivacy(t *testing.T, b *Broker) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, Config{Dir: b.dir})
	require.ErrorContains(t, err, "another node is using "+b.dir)
	_, err = Start(t.Context(), Config{Dir: t.TempDir(), AMQPPort: b.ports.amqp})
	require.ErrorContains(t, err, "in use")

	listening := listeners(t, b.Pid())
	require.Len(t, listening, 4, "AMQP, management, streams, distribution: %v", listening)
	for _, addr := range append(listening, listeners(t, b.epmd.pid())...) {
		require.True(t, strings.HasPrefix(addr, "127.0.0.1:") || strings.HasPrefix(addr, "[::1]:"), addr)
	}
	cookie, err := os.Stat(filepath.Join(b.dir, ".erlang.cookie"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o400), cookie.Mode().Perm())
}

// If a node cannot start, the error says why, and nothing is left behind.
func TestFailedStart(t *testing.T) {
	dir := t.TempDir()
	b := start(t, Config{Dir: dir})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Stop(canceled), context.Canceled, "an orderly stop that takes too long becomes a kill")
	require.False(t, b.node.alive())

	node := filepath.Join(dir, "data", nodeName)
	require.NoError(t, os.RemoveAll(node))
	require.NoError(t, os.WriteFile(node, []byte("blocking"), 0o600))
	err := b.Restart(t.Context())
	require.ErrorIs(t, err, errExited)
	require.ErrorContains(t, err, "it wrote:")
	require.False(t, b.node.alive())
	require.False(t, b.epmd.alive())

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.NoError(t, os.Remove(node))
	require.ErrorIs(t, b.Restart(ctx), context.DeadlineExceeded)
	require.False(t, b.node.alive())
}

func TestConfigErrors(t *testing.T) {
	_, err := Start(t.Context(), Config{})
	require.ErrorContains(t, err, "Config.Dir is empty")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Start(t.Context(), Config{Dir: filepath.Join(file, "below")})
	require.ErrorContains(t, err, "making the node's folder")
}

// If a file or directory blocks the path, the error names it.
func TestBlockedPath(t *testing.T) {
	for _, name := range []string{"rabbitmq.conf", "lock", "log/startup.log"} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		_, err := Start(t.Context(), Config{Dir: dir})
		require.ErrorContains(t, err, filepath.Join(dir, name))
	}
	require.Error(t, writeCookie(filepath.Join(t.TempDir(), "missing", "cookie"), newCookie()))
	require.Equal(t, "(it wrote nothing)", logTail(t.TempDir()))
}

func testWaitReady(t *testing.T, b *Broker) {
	require.NoError(t, WaitReady(t.Context(), b.AMQPURL(), b.ManagementURL()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	stranger := strings.ReplaceAll(b.ManagementURL(), "guest", "stranger")
	require.ErrorContains(t, WaitReady(ctx, b.AMQPURL(), stranger), "401")

	require.NoError(t, dial(t.Context(), "127.0.0.1", b.ports.stream))
	require.Contains(t, b.StreamURL(), fmt.Sprintf(":%d/", b.ports.stream))
	require.NoError(t, b.Stop(t.Context()))
	require.ErrorContains(t, b.StopApp(t.Context()), "not running")
	require.ErrorContains(t, b.StartApp(t.Context()), "not running")
	require.ErrorIs(t, probeStreams(t.Context(), b.AMQPURL()), syscall.ECONNREFUSED)
	require.ErrorIs(t, probeManagement(t.Context(), b.ManagementURL()), syscall.ECONNREFUSED)
	require.Error(t, probeManagement(t.Context(), "no url\n"))
}

// A stream that refuses messages does not work: here the queue of that name is full.
func testProbe(t *testing.T, b *Broker) {
	ch := channel(t, b)
	_, err := ch.QueueDeclare(probeStream, true, false, false, false, amqp.Table{"x-max-length": 0, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	require.ErrorContains(t, writeAndRead(t.Context(), ch), "refused")

	_, err = ch.QueueDelete(probeStream, false, false, false)
	require.NoError(t, err)
	require.ErrorContains(t, writeAndRead(t.Context(), ch), "404", "there is no such stream to read")
	require.ErrorIs(t, writeAndRead(t.Context(), ch), amqp.ErrClosed)
}

func TestAvailable(t *testing.T) {
	require.NoError(t, Available())
	dir := t.TempDir()
	t.Setenv(envDir, dir)
	require.ErrorContains(t, Available(), "there is no "+dir+"/rabbitmq-server")
	for _, name := range []string{"rabbitmq-server", "rabbitmqctl", "epmd"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	require.NoError(t, Available())
	t.Setenv(envDir, "")
	old := scriptDirs
	t.Cleanup(func() { scriptDirs = old })
	scriptDirs = nil
	require.ErrorContains(t, Available(), "apt-get install rabbitmq-server")
	_, err := Start(t.Context(), Config{Dir: t.TempDir()})
	require.ErrorIs(t, err, errNotInstalled)
	t.Setenv("PATH", t.TempDir())
	require.ErrorIs(t, Available(), errNotInstalled)
}
