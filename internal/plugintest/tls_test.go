//go:build plugin

package plugintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// TestTLSOnly runs a node whose AMQP and management listeners all have TLS.
func TestTLSOnly(t *testing.T) {
	e := extension(t, "millrace.vhosts.1 = /\n")
	e.Plugins = nil
	n := startWith(t, e)
	ca := newAuthority(t)
	ca.sign(t, n.dir, "127.0.0.1", "broker.example")
	n.restartWithTLS(t, fmt.Sprintf("ssl_options.cacertfile = %[1]s/ca.pem\nssl_options.certfile = %[1]s/cert.pem\nssl_options.keyfile = %[1]s/key.pem\n"+
		"management.ssl.cacertfile = %[1]s/ca.pem\nmanagement.ssl.certfile = %[1]s/cert.pem\nmanagement.ssl.keyfile = %[1]s/key.pem\n", n.dir))
	n.trust = &tls.Config{RootCAs: ca.pool, MinVersion: tls.VersionTLS12}
	before := n.await(t, "/")
	require.True(t, strings.HasPrefix(environment(t, before, "MILLRACE_AMQP_URL"), "amqps://127.0.0.1:"))
	require.True(t, strings.HasPrefix(environment(t, before, "MILLRACE_MANAGEMENT_URL"), "https://127.0.0.1:"))
	n.eventually(t, func() bool { return n.vhost(t, "/").Get("overview.scheduler.phase").String() == "leading" }, "it leads")
	n.eventually(t, func() bool {
		return len(n.get(t, "/api/policies/%2F", guest).get("#").Raw) > 0 && n.get(t, "/api/policies/%2F", guest).get("#").Int() > 0
	},
		"the sidecar reaches the management API")
	for _, c := range n.get(t, "/api/connections", guest).get("#.ssl").Array() {
		require.True(t, c.Bool(), "no connection is without TLS")
	}

	name := "localhost"
	if os.Getenv("MILLRACE_TEST_RABBITMQ") != "" {
		name = "127.0.0.1" // the root directory of that RabbitMQ has no /etc/hosts
	}
	t.Run("browsers", func(t *testing.T) { testTLSBrowser(t, n) })
	t.Run("renewed certificate", func(t *testing.T) {
		renewed := newAuthority(t)
		renewed.sign(t, n.dir, name)
		n.trust = &tls.Config{RootCAs: renewed.pool, MinVersion: tls.VersionTLS12, ServerName: name}
		_, err := n.Eval(t.Context(), "ssl:clear_pem_cache().")
		require.NoError(t, err)
		n.eventually(t, func() bool { pid := n.vhost(t, "/").Get("pid").Int(); return pid != 0 && int(pid) != before }, "the sidecar starts again")
		after := n.await(t, "/")
		require.True(t, strings.HasPrefix(environment(t, after, "MILLRACE_AMQP_URL"), "amqps://"+name+":"))
		n.logs(t, "certificates of RabbitMQ's listeners have changed")
	})
	t.Run("reasons", func(t *testing.T) { testTLSReasons(t, n, name) })
	t.Run("TLS for the management API only", func(t *testing.T) { testTLSManagement(t, n) })
}

// restartWithTLS starts RabbitMQ on the node again, with the plugin, and with TLS on all its ports.
func (n *node) restartWithTLS(t *testing.T, config string) {
	t.Helper()
	n.reconfigure(t, func(text string) string {
		secure := regexp.MustCompile(`(?m)^listeners\.tcp\.1`).ReplaceAllString(text, tlsListener)
		return strings.ReplaceAll(secure, "management.tcp.", "management.ssl.") + config
	})
}

const tlsListener = "listeners.tcp = none\nlisteners.ssl.1"

// reconfigure starts RabbitMQ on the node again, with other settings. RabbitMQ 4.3 sometimes
// leaves a stream without a leader when its application is stopped and started within a node: then
// it is started once more.
func (n *node) reconfigure(t *testing.T, change func(string) string) {
	t.Helper()
	require.NoError(t, n.StopApp(t.Context()))
	file := filepath.Join(n.dir, "rabbitmq.conf")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(change(string(text))), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "enabled_plugins"), []byte("[rabbitmq_management,rabbitmq_stream,"+plugin+"].\n"), 0o600))
	n.startApp(t)
	for tries := 0; !n.streamsLead(t); tries++ {
		require.Less(t, tries, 3, "a stream has no leader")
		t.Log("a stream has no leader: RabbitMQ is started again")
		require.NoError(t, n.StopApp(t.Context()))
		n.startApp(t)
	}
}

// startApp starts RabbitMQ with the listeners that its configuration names.
func (n *node) startApp(t *testing.T) {
	t.Helper()
	_, err := n.Eval(t.Context(), "application:unset_env(rabbitmq_management, tcp_config), "+
		"[application:set_env(rabbit, Key, []) || Key <- [tcp_listeners, ssl_listeners]], rabbit:start().")
	require.NoError(t, err)
}

// streamsLead waits until each stream has a leader. It reports false if some have none.
func (n *node) streamsLead(t *testing.T) bool {
	t.Helper()
	for range 40 {
		left, err := n.Eval(t.Context(), "timer:sleep(500), [amqqueue:get_name(Q) || Q <- rabbit_amqqueue:list(), "+
			"amqqueue:get_type(Q) =:= rabbit_stream_queue, not is_process_alive(amqqueue:get_pid(Q))].")
		require.NoError(t, err)
		if left == "[]" {
			return true
		}
	}
	return false
}

// testTLSManagement has TLS for the management API only.
func testTLSManagement(t *testing.T, n *node) {
	n.deletePolicies(t) // no sidecar runs now
	n.reconfigure(t, func(text string) string { return strings.Replace(text, tlsListener, "listeners.tcp.1", 1) })
	pid := n.await(t, "/")
	require.True(t, strings.HasPrefix(environment(t, pid, "MILLRACE_AMQP_URL"), "amqp://127.0.0.1:"))
	require.True(t, strings.HasPrefix(environment(t, pid, "MILLRACE_MANAGEMENT_URL"), "https://"))
	n.eventually(t, func() bool { return n.get(t, "/api/policies/%2F", guest).get("#").Int() > 0 }, "the sidecar reaches the management API")
}

// deletePolicies deletes what a sidecar sets through the management API.
func (n *node) deletePolicies(t *testing.T) {
	t.Helper()
	for _, policy := range n.get(t, "/api/policies/%2F", guest).get("#.name").Array() {
		a := sendTrusting(t, n.request(t, http.MethodDelete, "/api/policies/%2F/"+policy.String(), guest, http.NoBody), n.trust)
		require.Equal(t, http.StatusNoContent, a.status, a.body)
	}
}

// testTLSBrowser uses the proxy over HTTPS.
func testTLSBrowser(t *testing.T, n *node) {
	begun := sendTrusting(t, n.request(t, http.MethodPost, "/api/millrace-session", guest, http.NoBody), n.trust)
	require.Equal(t, http.StatusNoContent, begun.status, begun.body)
	cookie, err := http.ParseSetCookie(begun.header.Get("Set-Cookie"))
	require.NoError(t, err)
	require.True(t, cookie.Secure)
	require.Equal(t, "guest", n.get(t, root+"/api/whoami", guest).get("name").String())

	header := n.request(t, http.MethodGet, "/", guest, http.NoBody).Header
	header.Set("Origin", n.site())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: n.trust}}
	conn, _, err := websocket.Dial(t.Context(), n.site()+root+"/api/events?topics=scheduled", &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	require.NoError(t, err)
	_, text, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(text), "update")
	require.NoError(t, conn.CloseNow())
}

// testTLSReasons changes settings so that no sidecar can connect. The tab says why.
func testTLSReasons(t *testing.T, n *node, name string) {
	other := newAuthority(t)
	elsewhere := filepath.Join(n.dir, "elsewhere")
	nameless := filepath.Join(n.dir, "nameless")
	require.NoError(t, os.MkdirAll(elsewhere, 0o700))
	require.NoError(t, os.MkdirAll(nameless, 0o700))
	other.sign(t, elsewhere, "broker.invalid", "*.broker.invalid", "192.0.2.1")
	other.sign(t, nameless)
	options := func(dir, more string) string {
		return fmt.Sprintf(`application:set_env(rabbit, ssl_options, [{certfile, "%s/cert.pem"}%s])`, dir, more)
	}
	const (
		add        = "listeners.tcp.local = 127.0.0.1:5672"
		unset      = "application:set_env(rabbitmq_millrace, tls_host, undefined)"
		management = "application:set_env(rabbitmq_management, ssl_config, [{certfile, %q} | proplists:delete(certfile, element(2, application:get_env(rabbitmq_management, ssl_config)))])"
	)
	for _, test := range []struct {
		name, change string
		says         []string
	}{
		{"another name", options(elsewhere, ""), []string{"elsewhere/cert.pem (broker.invalid, *.broker.invalid, 192.0.2.1) leads to this listener", "/etc/hosts", add}},
		{"a setting that is not a name", `application:set_env(rabbitmq_millrace, tls_host, "a.b.broker.invalid")`, []string{"set millrace.tls_host to one of its names", add}},
		{"a setting that is a name of one certificate", `application:set_env(rabbitmq_millrace, tls_host, "a.broker.invalid")`,
			[]string{"the management API has only listeners with TLS", "is for " + name + ": set millrace.tls_host to one of its names", "management.tcp.ip = 127.0.0.1"}},
		{"no name", unset + ", " + options(nameless, ""), []string{"has no names that clients can check (subjectAltName)", add}},
		{"certificates of clients", options(n.dir, ", {verify, verify_peer}, {fail_if_no_peer_cert, true}"), []string{"require a certificate of each client", add}},
		{"no file", options("/none", ""), []string{"/none/cert.pem cannot be read: no such file or directory", add}},
		{"the management API", options(n.dir, "") + ", " + fmt.Sprintf(management, elsewhere+"/cert.pem"),
			[]string{"the management API has only listeners with TLS", "management.tcp.ip = 127.0.0.1"}},
		{"no listener", "application:set_env(rabbit, ssl_listeners, [])", []string{"RabbitMQ has no AMQP listener", add}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := n.Eval(t.Context(), test.change+", [rabbit_millrace_sidecars:stop_sidecar(V) || {V, _} <- rabbit_millrace_sidecars:running()].")
			require.NoError(t, err) // it starts again, without waiting
			n.eventually(t, func() bool {
				reason := n.vhost(t, "/").Get("last_exit.reason").String()
				return !slices.ContainsFunc(test.says, func(part string) bool { return !strings.Contains(reason, part) })
			}, "the reason")
		})
	}
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool
	text        []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{certificate: template(), key: newKey(t), pool: x509.NewCertPool()}
	a.certificate.IsCA, a.certificate.BasicConstraintsValid = true, true
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.text = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.True(t, a.pool.AppendCertsFromPEM(a.text))
	return a
}

// sign writes ca.pem, cert.pem and key.pem for a server with these names.
func (a *authority) sign(t *testing.T, dir string, names ...string) {
	t.Helper()
	c, key := template(), newKey(t)
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"ca.pem":   a.text,
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
}

var serial int64

func template() *x509.Certificate {
	serial++
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	c.Subject.CommonName = fmt.Sprintf("certificate %d", serial)
	return c
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}
