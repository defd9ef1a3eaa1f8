package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// counts finds the last line of live counts.
var counts = regexp.MustCompile(`enqueued (\d+)   processed (\d+)   failed (\d+)   scheduled (\d+)   retries (\d+)   dead (\d+)\n`)

// shows reports whether the last line of counts has a number in all named columns.
func shows(text string, columns ...int) bool {
	all := counts.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return false
	}
	for _, c := range columns {
		if all[len(all)-1][c] == "0" {
			return false
		}
	}
	return true
}

// connectsAs reports whether a sidecar is connected as a user, as far as the broker at the printed
// address shows.
func connectsAs(t *testing.T, text, user string) bool {
	t.Helper()
	address := regexp.MustCompile(`Broker +http://(\S+)`).FindStringSubmatch(text)
	if address == nil {
		return false
	}
	m, err := broker.NewManagement("http://guest:guest@"+address[1], "/", nil)
	require.NoError(t, err)
	connections, err := m.ConnectionsOf(t.Context(), user)
	return err == nil && slices.ContainsFunc(connections, func(c broker.Connection) bool { return c.Product == "Millrace" })
}

// hasEvents reports whether a delayed message has arrived in the demo's queue.
func hasEvents(t *testing.T, text string) bool {
	t.Helper()
	url := regexp.MustCompile(`AMQP +(amqp://\S+)`).FindStringSubmatch(text)
	if url == nil {
		return false
	}
	conn, err := broker.Dial(t.Context(), broker.Config{AMQPURL: url[1]})
	if err != nil {
		return false
	}
	defer conn.Close()
	messages, _, err := conn.Queues().Depth(t.Context(), "demo.events")
	return err == nil && messages > 0
}

// showsFlow reports whether the demo has a limit, a governed queue that delivers its jobs, a unique
// job that has its key, and a periodic job.
func showsFlow(t *testing.T, text string) bool {
	t.Helper()
	amqpURL, web := regexp.MustCompile(`AMQP +(amqp://\S+)`).FindStringSubmatch(text), regexp.MustCompile(`http://(\S+)/api/overview`).FindStringSubmatch(text)
	if amqpURL == nil || web == nil {
		return false
	}
	for args, shown := range map[string]string{
		"limits": `"demo\.one-import"`, "governed": `"out": ?[1-9]`, "unique": `"jid"`, "periodic": `"demo\.clean-up"`,
	} {
		r := millrace(t, args, "-o", "json", "--http-addr", web[1], "--amqp-url", amqpURL[1])
		if !regexp.MustCompile(shown).MatchString(r.out) {
			t.Log(args, r.code, r.err)
			return false
		}
	}
	return true
}

// needsPackage skips a test of `millrace up` if it cannot run here.
func needsPackage(t *testing.T) {
	t.Helper()
	if err := localbroker.Available(); err != nil {
		t.Skipf("millrace up needs RabbitMQ here: %v", err)
	}
}

func TestUp(t *testing.T) {
	needsPackage(t)
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	up := func(until func(out string) bool, args ...string) string {
		ctx, interrupt := contextOf(t)
		defer interrupt()
		var out, log clitest.Buffer
		ended := make(chan int, 1)
		go func() {
			ended <- execute(ctx, append([]string{"up", "--rate", "100", "--http-addr", "127.0.0.1:15680"}, args...), &out, &log)
		}()
		brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return until(out.String()) || len(ended) > 0 }, "it shows what is expected")
		interrupt()
		select {
		case code := <-ended:
			require.Zero(t, code, "%s%s", out.String(), log.String())
		case <-time.After(30 * time.Second):
			t.Fatal("it does not end")
		}
		return out.String()
	}

	out := up(func(out string) bool {
		return shows(out, 1, 2, 3, 4, 5, 6) && connectsAs(t, out, "millrace") && !connectsAs(t, out, "guest")
	})
	require.Contains(t, out, filepath.Join(state, "millrace", "up"))
	require.Regexp(t, `AMQP\s+amqp://guest:guest@127\.0\.0\.1:\d+/`, out)
	require.Regexp(t, `Broker\s+http://127\.0\.0\.1:\d+\n`, out)
	require.Regexp(t, `\nMillrace is up. Open the web UI, user guest, password guest:\n\n  http://127\.0\.0\.1:\d+/\n\n`, out, "the web UI comes first, alone on its line")
	require.Regexp(t, `REST API\s+http://127\.0\.0\.1:\d+/api/overview`, out)

	out = up(func(out string) bool { return shows(out, 1, 2) && hasEvents(t, out) && showsFlow(t, out) })
	require.True(t, shows(out, 6), "the dead job of the first run is still there")
}

func TestInterruptedUpLeavesNoProcess(t *testing.T) {
	needsPackage(t)
	state := t.TempDir()
	cmd := clitest.Process(t, "up")
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	var out clitest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return shows(out.String(), 1) }, "jobs are enqueued")

	second := clitest.Process(t, "up")
	second.Env = append(second.Env, "XDG_STATE_HOME="+state)
	said, err := second.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "another `millrace up` is using")

	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT), "to the whole group, as a terminal does")
	require.NoError(t, cmd.Wait(), out.String())
	require.Empty(t, processesOf(t, state))
}

// Closing the terminal stops everything in order, as Ctrl-C does.
func TestUpStopsWhenTerminalCloses(t *testing.T) {
	needsPackage(t)
	state := t.TempDir()
	cmd := clitest.Process(t, "up")
	env, err := exec.LookPath("env")
	require.NoError(t, err)
	// The tests may run under nohup, which ignores the signal.
	cmd.Path, cmd.Args = env, append([]string{"env", "--default-signal=HUP"}, cmd.Args...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out clitest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	brokertest.EventuallyWithin(t, 2*time.Minute, func() bool { return shows(out.String(), 1) }, "jobs are enqueued")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP))
	require.NoError(t, cmd.Wait(), out.String())
	require.Contains(t, out.String(), "Stopping. The data stay for the next start.")
	require.Empty(t, processesOf(t, state))
}

// processesOf lists the processes that have a folder in their environment.
func processesOf(t *testing.T, folder string) []string {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), folder) {
			found = append(found, path)
		}
	}
	return found
}

func TestUpRefusesInvalidSettings(t *testing.T) {
	r := millrace(t, "up", "--rate", "0")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "--rate")

	needsPackage(t)
	t.Setenv("XDG_STATE_HOME", clitest.File(t, ""))
	require.Equal(t, cli.ExitFailed, millrace(t, "up").code)

	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	r = millrace(t, "up")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "XDG_STATE_HOME")
}

func TestUpWithoutPackageSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if localbroker.Available() == nil {
		t.Skip("epmd does not come from PATH here")
	}
	r := millrace(t, "up")
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "package rabbitmq-server: `make up` installs it")
}
