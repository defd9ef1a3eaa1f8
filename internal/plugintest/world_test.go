//go:build plugin

package plugintest

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

const (
	plugin = "rabbitmq_millrace"
	within = 3 * time.Minute // for what a busy machine does slowly
	often  = 100 * time.Millisecond
)

// extension is the plugin and a sidecar.
func extension(t *testing.T, config string) localbroker.Extension {
	t.Helper()
	file := os.Getenv("MILLRACE_TEST_PLUGIN")
	require.NotEmpty(t, file, "MILLRACE_TEST_PLUGIN must name the plugin's .ez file: run `make test-plugin`")
	binary, err := sidecar.Binary()
	require.NoError(t, err)
	if !strings.Contains(config, "millrace.sidecar =") {
		config += "millrace.sidecar = " + localbroker.FilesDir + "/" + filepath.Base(binary) + "\n"
	}
	return localbroker.Extension{Plugins: []string{plugin}, Files: []string{file, binary}, Config: config}
}

// node is a RabbitMQ with the plugin.
type node struct {
	*localbroker.Broker
	dir   string
	trust *tls.Config // nil if the management API has no TLS
}

func start(t *testing.T, config string) *node {
	t.Helper()
	return startWith(t, extension(t, config))
}

func startWith(t *testing.T, e localbroker.Extension) *node {
	t.Helper()
	dir := shortDir(t)
	b, err := localbroker.Start(t.Context(), localbroker.Config{Dir: dir, Extension: e})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop(context.Background())) })
	return &node{Broker: b, dir: dir}
}

// startCluster starts three nodes that serve the virtual host /.
func startCluster(t *testing.T) (nodes []*node) {
	t.Helper()
	dir := shortDir(t)
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: dir, Extension: extension(t, "millrace.vhosts.1 = /\n")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	for i, b := range c.Nodes {
		nodes = append(nodes, &node{Broker: b, dir: filepath.Join(dir, fmt.Sprintf("node%d", i+1))})
	}
	return nodes
}

// shortDir returns a folder for the time of the test. The path of a socket below it must be short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "plugin")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// answer is what the management port answers.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) get(path string) gjson.Result { return gjson.Get(a.body, path) }

// user is a name and a password with a colon between them, or nothing.
const (
	guest   = "guest:guest"
	nothing = ""
)

// site returns the origin of the management port.
func (n *node) site() string {
	_, host, _ := strings.Cut(n.ManagementURL(), "@")
	if n.trust != nil {
		return "https://" + host
	}
	return "http://" + host
}

// request returns a request to the management port. The path begins with a slash.
func (n *node) request(t *testing.T, method, path, user string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, n.site()+path, body)
	require.NoError(t, err)
	r.Close = true
	if name, password, found := strings.Cut(user, ":"); found {
		r.SetBasicAuth(name, password)
	}
	if body != http.NoBody {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	return sendTrusting(t, r, nil)
}

// sendTrusting is send for TLS.
func sendTrusting(t *testing.T, r *http.Request, trust *tls.Config) answer {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if trust != nil {
		client.Transport = &http.Transport{TLSClientConfig: trust}
	}
	resp, err := client.Do(r)
	// RabbitMQ opens the listeners of the management API again when a plugin of that API is enabled
	// or disabled, some time after the command has ended.
	for end := time.Now().Add(within); errors.Is(err, syscall.ECONNREFUSED) && r.Body == http.NoBody && time.Now().Before(end); {
		time.Sleep(often)
		resp, err = client.Do(r)
	}
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func (n *node) get(t *testing.T, path, user string) answer {
	t.Helper()
	return sendTrusting(t, n.request(t, http.MethodGet, path, user, http.NoBody), n.trust)
}

// put changes something in RabbitMQ itself, as guest.
func (n *node) put(t *testing.T, path, body string) {
	t.Helper()
	a := send(t, n.request(t, http.MethodPut, path, guest, strings.NewReader(body)))
	require.Less(t, a.status, 300, "%s: %s", path, a.body)
}

// vhost returns what the tab shows of a virtual host to guest; nothing if it has no sidecar.
func (n *node) vhost(t *testing.T, name string) gjson.Result {
	t.Helper()
	for _, v := range n.get(t, "/api/millrace-status", guest).get("vhosts").Array() {
		if v.Get("vhost").String() == name {
			return v
		}
	}
	return gjson.Result{}
}

// await waits until a virtual host has a sidecar that answers and leads, and returns its process.
func (n *node) await(t *testing.T, vhost string) (pid int) {
	t.Helper()
	n.eventually(t, func() bool {
		v := n.vhost(t, vhost)
		pid = int(v.Get("pid").Int())
		return v.Get("status").Int() == http.StatusOK && v.Get("overview.leader.epoch").Int() >= 0 && v.Get("overview.views.caught_up").Bool()
	}, "the sidecar of "+vhost)
	require.NotZero(t, pid)
	return pid
}

func (n *node) eventually(t *testing.T, holds func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(often) {
		require.True(t, time.Now().Before(end), "%s: not within %s; the status is %s", what, within, n.get(t, "/api/millrace-status", guest).body)
	}
}

// runs reports whether a process runs, and is not just waiting to be reaped.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(after, []byte("Z"))
}

// sidecars returns the processes that run this node's binary.
func (n *node) sidecars(t *testing.T) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.HasPrefix(line, []byte(n.dir+"/files/millrace\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		require.NoError(t, err)
		if runs(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// environment returns a variable of a process.
func environment(t *testing.T, pid int, name string) string {
	t.Helper()
	all, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	for _, line := range bytes.Split(all, []byte{0}) {
		if value, found := bytes.CutPrefix(line, []byte(name+"=")); found {
			return string(value)
		}
	}
	return ""
}
