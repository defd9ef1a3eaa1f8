package broker_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// tlsHosts has, in the process that trusts the certificates, the virtual host and two URLs.
const tlsHosts = "MILLRACE_TEST_TLS_HOSTS"

// The certificate of a management API is checked for the name that the URL gives its host, and not
// for the address to which the name resolves. A program reads SSL_CERT_FILE once, so another
// process does this.
func TestManagementTLSChecksGivenHostName(t *testing.T) {
	if given := os.Getenv(tlsHosts); given != "" {
		hosts := strings.Fields(given)
		checkManagementTLS(t, hosts[0], hosts[1], hosts[2])
		return
	}
	v := brokertest.New(t)
	ofLocalhost, ofOther := brokertest.NewCertificate(t, "localhost"), brokertest.NewCertificate(t, "other.example")
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	for _, c := range []*brokertest.Certificate{ofLocalhost, ofOther} {
		text, err := os.ReadFile(c.File)
		require.NoError(t, err)
		before, _ := os.ReadFile(trusted)
		require.NoError(t, os.WriteFile(trusted, append(before, text...), 0o600))
	}
	named := func(c *brokertest.Certificate) string {
		front := c.Front(t, v.ManagementURL(), "https")
		u, err := url.Parse(front)
		require.NoError(t, err)
		return elsewhere(t, front, "localhost:"+u.Port())
	}
	program, err := os.Executable()
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	other.Env = append(os.Environ(), "SSL_CERT_FILE="+trusted, tlsHosts+"="+v.Name+" "+named(ofLocalhost)+" "+named(ofOther))
	out, err := other.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
}

// checkManagementTLS gets the URLs of two servers at localhost. The certificate of one is for
// localhost, and that of the other for another name.
func checkManagementTLS(t *testing.T, vhost, right, wrong string) {
	t.Helper()
	hostOf := func(raw string) string {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		return u.Host
	}
	for range 5 { // in any order
		m := open(t, several(t, wrong, right), vhost)
		_, err := m.Queues(soon(t))
		require.NoError(t, err)
		require.Equal(t, []string{hostOf(wrong)}, m.SilentHosts(soon(t)), "the host whose certificate has another name")
	}

	byAddress := elsewhere(t, right, strings.Replace(hostOf(right), "localhost", "127.0.0.1", 1))
	_, err := broker.OpenManagement(soon(t), several(t, wrong, byAddress), vhost, nil)
	require.ErrorContains(t, err, hostOf(wrong)+": tls: failed to verify certificate: x509: certificate is valid for other.example, not localhost")
	require.ErrorContains(t, err, hostOf(byAddress)+": tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1")
}
