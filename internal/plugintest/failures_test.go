//go:build plugin

package plugintest

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testSecrets looks for the password and the key in all that the node writes and shows.
func testSecrets(t *testing.T, n *node) {
	pid := n.await(t, "/")
	var secrets []string
	for _, name := range []string{"MILLRACE_AMQP_PASSWORD", "MILLRACE_AUTH_HEADER_KEY"} {
		secret := environment(t, pid, name)
		require.Greater(t, len(secret), 20, name)
		secrets = append(secrets, secret)
	}
	require.Empty(t, environment(t, pid, "RABBITMQ_ERLANG_COOKIE"))
	hidden := func(where string, text []byte) {
		for i, secret := range secrets {
			require.False(t, bytes.Contains(text, []byte(secret)), "secret %d is in %s", i, where)
		}
	}
	hidden("the definitions", []byte(n.get(t, "/api/definitions", guest).body))
	hidden("the status", []byte(n.get(t, "/api/millrace-status", guest).body))
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range lines {
		text, _ := os.ReadFile(file) // a process may have ended
		hidden(file, text)
	}
	state, err := n.Eval(t.Context(), "[catch sys:get_state(P, 2000) || P <- [rabbit_millrace_user, rabbit_millrace_sessions | [P || {_, P} <- rabbit_millrace_sidecars:running()]]].")
	require.NoError(t, err)
	require.Contains(t, state, "running")
	hidden("the state of processes, which crash reports print", []byte(state))
	files := 0
	err = filepath.WalkDir(n.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // files come and go
		}
		if info, err := entry.Info(); err != nil || info.Size() > 64<<20 {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			files++
			hidden(path, text)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 20)
}

// testTab opens the tab in a browser, and Millrace from there.
func testTab(t *testing.T, n *node) {
	tab(t, n, "supervise")
}

func tab(t *testing.T, n *node, mode string) {
	t.Helper()
	r := n.request(t, http.MethodGet, "/", nothing, http.NoBody)
	cmd := exec.CommandContext(t.Context(), "node", "test/plugin.js", r.URL.String(), mode)
	cmd.Dir = "../../ui"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

func testKilledSidecar(t *testing.T, n *node) {
	before := n.await(t, "/")
	kill(t, before)
	n.eventually(t, func() bool { pid := n.vhost(t, "/").Get("pid").Int(); return pid != 0 && int(pid) != before }, "it starts again")
	n.await(t, "/")
	v := n.vhost(t, "/")
	require.Contains(t, v.Get("last_exit.reason").String(), "killed by signal 9")
	n.logs(t, "killed by signal 9")
	require.EqualValues(t, 1, v.Get("restarts").Int())
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, p.Kill())
}

// logs waits until RabbitMQ's log has a text.
func (n *node) logs(t *testing.T, what string) {
	t.Helper()
	n.eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(n.dir, "log", "rabbit.log"))
		require.NoError(t, err)
		return bytes.Contains(text, []byte(what))
	}, "the log has "+what)
}

// testChangedPassword changes the password of the sidecars' user, as an administrator may.
func testChangedPassword(t *testing.T, n *node) {
	before := n.await(t, "/")
	n.put(t, "/api/users/millrace_plugin", `{"password":"mine","tags":"millrace_plugin"}`)
	n.eventually(t, func() bool { pid := n.vhost(t, "/").Get("pid").Int(); return pid != 0 && int(pid) != before }, "it starts with a new password")
	n.await(t, "/")
	require.Contains(t, n.get(t, "/api/users/millrace_plugin", guest).get("tags").String(), "policymaker")
}

// testEnabling enables and disables the plugin five times. Nothing may be left behind but the index
// of topics, which the other nodes of a cluster may use.
func testEnabling(t *testing.T, n *node) {
	census := func() string {
		out, err := n.Eval(t.Context(), `timer:sleep(500), {[P || P <- processes(), {_, {M, _, _}} <- [proc_lib:translate_initial_call(P)] ++
			[{x, element(1, {proc_lib:translate_initial_call(P)})}], is_atom(M), lists:prefix("rabbit_millrace", atom_to_list(M))],
			[erlang:port_info(P, name) || P <- erlang:ports(), {name, N} <- [erlang:port_info(P, name)], lists:suffix("/millrace", N)],
			[T || T <- ets:all(), is_atom(T), lists:prefix("rabbit_millrace", atom_to_list(T)), T =/= rabbit_millrace_topic_1],
			[A || {A, _, _} <- application:which_applications(), A =:= rabbitmq_millrace]}.`)
		require.NoError(t, err)
		return out
	}
	vhosts := []string{"/", "tenant-1", "tenant-2", "found", "a/b ü"}
	for range 5 {
		require.NoError(t, n.SetPlugins(t.Context()))
		require.Empty(t, n.sidecars(t), "disabling waits until the sidecars have stopped")
		require.Equal(t, "{[],[],[],[]}", census())
		require.Equal(t, http.StatusNotFound, n.get(t, root+"/api/overview", guest).status)
		sockets, err := filepath.Glob(filepath.Join(n.dir, "data", "*", "millrace", "*.s"))
		require.NoError(t, err)
		require.Empty(t, sockets)
		require.NoError(t, n.SetPlugins(t.Context(), plugin))
		for _, vhost := range vhosts {
			n.await(t, vhost)
		}
		require.Len(t, n.sidecars(t), len(vhosts))
	}
}

// testFailingProcesses kills processes of the plugin more often than a supervisor allows. RabbitMQ
// must not notice.
func testFailingProcesses(t *testing.T, n *node) {
	_, err := n.Eval(t.Context(), `[begin catch exit(whereis(rabbit_millrace_vhosts), kill), timer:sleep(50) end || _ <- lists:seq(1, 15)].`)
	require.NoError(t, err)
	n.logs(t, "Millrace's processes fail too often")
	n.eventually(t, func() bool { return len(n.sidecars(t)) == 0 }, "its sidecars stop")
	require.Equal(t, http.StatusOK, n.get(t, "/api/overview", guest).status)
	require.Equal(t, http.StatusOK, n.get(t, "/api/millrace-status", guest).status)
	require.Equal(t, http.StatusNotFound, n.get(t, root+"/api/overview", guest).status)
	n.await(t, "/") // after 30 seconds
}

// testKilledNode kills the node. Its sidecars notice.
func testKilledNode(t *testing.T, n *node) {
	n.await(t, "/")
	require.NotEmpty(t, n.sidecars(t))
	require.NoError(t, n.Kill())
	killed := time.Now()
	for len(n.sidecars(t)) > 0 {
		require.Less(t, time.Since(killed), 30*time.Second)
		time.Sleep(often)
	}
	t.Logf("nothing was left after %s", time.Since(killed).Round(often))
	require.Less(t, time.Since(killed), 3*time.Second)
	require.NoError(t, n.Restart(t.Context()))
	n.await(t, "/")
	n.await(t, "found")
}

// TestSidecarThatExits backs off from one second to thirty, and its reason is shown.
func TestSidecarThatExits(t *testing.T) {
	n := start(t, "millrace.vhosts.1 = /\nmillrace.sidecar = /bin/false\n")
	program := filepath.Join(n.dir, "exits")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho 'time=now level=INFO msg=started'\necho 'millrace: no <b>luck</b> today' >&2\nexit 3\n"), 0o700))
	n.eventually(t, func() bool { return n.vhost(t, "/").Get("last_exit.reason").String() != "" }, "it has exited")
	_, err := n.Eval(t.Context(), fmt.Sprintf("application:set_env(rabbitmq_millrace, sidecar, %q).", program))
	require.NoError(t, err)
	var pause time.Duration
	n.eventually(t, func() bool {
		v := n.vhost(t, "/")
		pause = time.Duration(v.Get("starts_at").Int()-v.Get("last_exit.at").Int()) * time.Millisecond
		return v.Get("restarts").Int() >= 6 && v.Get("state").String() == "waiting"
	}, "it has started six times")
	require.InDelta(t, 30, pause.Seconds(), 1)
	require.Equal(t, "exit status 3: millrace: no <b>luck</b> today", n.vhost(t, "/").Get("last_exit.reason").String())
	for _, pause := range []string{"1 s", "2 s", "4 s", "8 s", "16 s", "30 s"} {
		n.logs(t, "starts again in "+pause)
	}
	n.logs(t, "no <b>luck</b> today")
	require.Equal(t, http.StatusServiceUnavailable, n.get(t, root+"/api/overview", guest).status)
	tab(t, n, "waiting")

	_, err = n.Eval(t.Context(), `application:set_env(rabbitmq_millrace, sidecar, "/none/millrace").`)
	require.NoError(t, err)
	n.eventually(t, func() bool {
		return strings.Contains(n.vhost(t, "/").Get("last_exit.reason").String(), "there is no sidecar at /none/millrace")
	}, "a missing program")
}

// TestForeignUser leaves a user alone that an administrator has created.
func TestForeignUser(t *testing.T) {
	n := start(t, "millrace.vhosts.1 = /\nmillrace.user = ops\nmillrace.sidecar = /bin/false\n")
	n.put(t, "/api/users/ops", `{"password":"secret","tags":"management"}`)
	require.NoError(t, n.SetPlugins(t.Context()))
	_, err := n.Eval(t.Context(), `rabbit_auth_backend_internal:set_tags(<<"ops">>, [management], <<"test">>).`)
	require.NoError(t, err)
	require.NoError(t, n.SetPlugins(t.Context(), plugin))
	n.eventually(t, func() bool {
		return strings.Contains(n.vhost(t, "/").Get("last_exit.reason").String(), "this plugin did not create it")
	}, "the reason")
	n.put(t, "/api/users/ops", `{"password":"secret","tags":"management"}`)
	require.Equal(t, http.StatusOK, n.get(t, "/api/whoami", "ops:secret").status)
}

// TestLinkMode adds a tab that leads elsewhere, and no process.
func TestLinkMode(t *testing.T) {
	n := start(t, "millrace.mode = link\nmillrace.url = https://jobs.example/millrace/\n")
	a := n.get(t, "/api/millrace-status", guest)
	require.Equal(t, "link", a.get("mode").String())
	require.Equal(t, "https://jobs.example/millrace/", a.get("url").String())
	require.Equal(t, http.StatusNotFound, n.get(t, root+"/", guest).status)
	require.Equal(t, http.StatusMethodNotAllowed, send(t, n.request(t, http.MethodPost, "/api/millrace-session", guest, http.NoBody)).status, "there is no such route")
	require.Empty(t, n.sidecars(t))
	require.Equal(t, http.StatusNotFound, n.get(t, "/api/users/millrace_plugin", guest).status, "it creates no user")
	require.Empty(t, n.get(t, "/api/millrace-status", guest).get("unserved").Array())
	n.importExchange(t, "/", "delayed")
	require.Equal(t, `["/"]`, n.get(t, "/api/millrace-status", guest).get("unserved").Raw)
	tab(t, n, "link")
	n.logs(t, "Millrace: virtual host / has exchanges of the type x-delayed-message, but no sidecar serves it")
}
