package readmetest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// proxied is a sidecar behind a reverse proxy, which clients reach as https://jobs.example.
type proxied struct {
	*sidecar
	client *http.Client
}

// The reverse proxies that the page configures pass on what the API and the web UI need.
func TestReverseProxies(t *testing.T) {
	block := readmeBlocks(t, "docs/api-access.md")
	s := serve(t, "--behind-proxy", "--http-hosts", "jobs.example")
	for name, command := range map[string]func(*testing.T, string, string, *brokertest.Certificate) *exec.Cmd{"nginx": nginx, "caddy": caddy} {
		t.Run(name, func(t *testing.T) {
			certificate, addr := brokertest.NewCertificate(t, "jobs.example"), freeAddr(t)
			file := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]
			require.Contains(t, block[file], "127.0.0.1:15680")
			start(t, command(t, strings.Replace(block[file], "127.0.0.1:15680", s.addr, 1), addr, certificate))
			dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}
			p := &proxied{s, &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial, TLSClientConfig: certificate.Config(), DisableKeepAlives: true}}}
			brokertest.Eventually(t, func() bool {
				resp, err := p.client.Get("https://jobs.example/healthz")
				return err == nil && resp.Body.Close() == nil
			}, "%s listens", name)
			p.answersAsTheSidecar(t)
			p.signsIn(t)
			p.sendsEvents(t)
		})
	}
}

// nginx returns the command that runs a server block as a program of its own.
func nginx(t *testing.T, block, addr string, certificate *brokertest.Certificate) *exec.Cmd {
	folder := t.TempDir()
	block = replaced(t, block, "listen 443 ssl", "listen "+addr+" ssl", "/etc/ssl/jobs.example.pem", certificate.File, "/etc/ssl/jobs.example.key", certificate.KeyFile)
	var main strings.Builder
	if os.Geteuid() == 0 {
		main.WriteString("user root;\n")
	}
	fmt.Fprintf(&main, "daemon off;\nworker_processes 1;\npid %[1]s/pid;\nevents {}\nhttp {\naccess_log off;\n", folder)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&main, "%s_temp_path %s/%[1]s;\n", kind, folder)
	}
	main.WriteString(block + "}\n")
	file := filepath.Join(folder, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(main.String()), 0o600))
	return exec.CommandContext(t.Context(), "/usr/sbin/nginx", "-p", folder, "-e", "stderr", "-c", file)
}

// caddy returns the command that runs a site with a certificate of the test.
func caddy(t *testing.T, site, addr string, certificate *brokertest.Certificate) *exec.Cmd {
	folder := t.TempDir()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	site = replaced(t, site, "jobs.example {\n", fmt.Sprintf("jobs.example:%s {\n\tbind %s\n\ttls %s %s\n", port, host, certificate.File, certificate.KeyFile))
	file := filepath.Join(folder, "Caddyfile")
	global := "{\n\tadmin off\n\tauto_https disable_redirects\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(global+site), 0o600))
	cmd := exec.CommandContext(t.Context(), "/usr/bin/caddy", "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	return cmd
}

// replaced replaces texts, each of which is there once.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(t, 1, strings.Count(text, pairs[i]), pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// do sends a request as the owner of the virtual host, directly or through the proxy.
func (p *proxied) do(t *testing.T, client *http.Client, method, target, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	require.NoError(t, err)
	req.SetBasicAuth(p.vhost.Owner.Name, p.vhost.Owner.Password)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// answersAsTheSidecar checks that paths and large bodies arrive unchanged.
func (p *proxied) answersAsTheSidecar(t *testing.T) {
	large := `{"class":"Large","args":["` + strings.Repeat("x", 2<<20) + `"]}`
	for _, c := range [][3]string{
		{http.MethodGet, "/api/whoami"}, {http.MethodGet, "/api/job-queues/a%2Fb%20c"}, {http.MethodGet, "/"},
		{http.MethodPost, "/api/jobs", large}, {http.MethodPost, "/api/jobs", `{"class":1}`},
	} {
		direct, want := p.do(t, http.DefaultClient, c[0], "http://"+p.addr+c[1], c[2])
		through, got := p.do(t, p.client, c[0], "https://jobs.example"+c[1], c[2])
		require.Equal(t, direct.StatusCode, through.StatusCode, "%s %s: %s", c[0], c[1], got)
		if c[2] != large { // its answer has an id that differs
			require.Equal(t, withoutID(want), withoutID(got), "%s %s", c[0], c[1])
		}
	}
}

var requestID = regexp.MustCompile(`"request_id":"\w+"`)

func withoutID(answer string) string { return requestID.ReplaceAllString(answer, "") }

// signsIn checks that the sidecar knows that clients use TLS.
func (p *proxied) signsIn(t *testing.T) {
	resp, body := p.do(t, p.client, http.MethodPost, "https://jobs.example/api/session",
		fmt.Sprintf(`{"name":%q,"password":%q}`, p.vhost.Owner.Name, p.vhost.Owner.Password))
	require.Less(t, resp.StatusCode, 300, body)
	require.NotEmpty(t, resp.Cookies())
	require.True(t, resp.Cookies()[0].Secure)
}

// sendsEvents checks that events arrive when they happen, over both kinds of connections.
func (p *proxied) sendsEvents(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const path = "https://jobs.example/api/events?topics=scheduled&for=60"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	require.NoError(t, err)
	req.SetBasicAuth(p.vhost.Owner.Name, p.vhost.Owner.Password)
	resp, err := p.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	header := http.Header{"Authorization": {req.Header.Get("Authorization")}, "Origin": {"https://jobs.example"}}
	socket, _, err := websocket.Dial(ctx, path, &websocket.DialOptions{HTTPClient: p.client, HTTPHeader: header})
	require.NoError(t, err)
	defer func() { _ = socket.CloseNow() }()
	data := func() string {
		for lines.Scan() {
			if text, is := strings.CutPrefix(lines.Text(), "data:"); is {
				return text
			}
		}
		require.NoError(t, lines.Err())
		return ""
	}
	message := func() string {
		_, text, err := socket.Read(ctx)
		require.NoError(t, err)
		return string(bytes.TrimSpace(text))
	}
	data()
	message()
	_, enqueued := p.do(t, p.client, http.MethodPost, "https://jobs.example/api/jobs", `{"class":"Later","args":[],"at":"2099-01-01T08:00:00Z"}`)
	require.Contains(t, enqueued, `"jid"`)
	require.Contains(t, data(), "scheduled")
	require.Contains(t, message(), "scheduled")
}
