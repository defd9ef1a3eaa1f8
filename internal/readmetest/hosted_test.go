package readmetest

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// The commands of the page work with a broker that is reached over TLS alone.
func TestHostedBrokersPage(t *testing.T) {
	block := readmeBlocks(t, "docs/hosted-brokers.md")
	vhost := brokertest.New(t)
	admin := vhost.AddUser(t, "admin", brokertest.Permissions{Tags: "administrator"})
	certificate := brokertest.NewCertificate(t, "127.0.0.1")
	host := func(upstream, scheme string) string {
		u, err := url.Parse(certificate.Front(t, upstream, scheme))
		require.NoError(t, err)
		return u.Host
	}
	amqp, management := host(vhost.AMQPURL(), "amqps"), host(vhost.ManagementURL(), "https")

	folder := t.TempDir()
	require.NoError(t, os.Symlink(program(t), filepath.Join(folder, "millrace")))
	password := filepath.Join(folder, "password")
	require.NoError(t, os.WriteFile(password, []byte("SECRET\n"), 0o600))
	user := "hosted-" + vhost.Name
	run := func(block string, more ...string) *exec.Cmd {
		text := strings.NewReplacer(append(more, "VHOST", vhost.Name)...).Replace(block)
		require.NotRegexp(t, `HOST|ADMIN|/etc|/var`, text)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", text)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "SSL_CERT_FILE="+certificate.File, "CURL_CA_BUNDLE="+certificate.File,
			"MILLRACE_HTTP_ADDR="+freeAddr(t))
		return cmd
	}
	t.Cleanup(func() { _ = vhost.Try(t.Context(), http.MethodDelete, "/api/users/"+user, nil, nil) })
	out, err := run(block["user.sh"], "ADMIN:PASSWORD", admin.Name+":"+admin.Password, "https://HOST", "https://"+management,
		"/api/users/millrace", "/api/users/"+user, "/VHOST/millrace", "/"+vhost.Name+"/"+user).CombinedOutput()
	require.NoError(t, err, "%s", out)

	serve := run("exec "+block["serve.sh"], "millrace@HOST", user+"@"+amqp, "https://HOST", "https://"+management,
		"/etc/millrace/password", password, "/var/lib/millrace", filepath.Join(folder, "state"))
	start(t, serve)
	brokertest.Eventually(t, func() bool {
		ready := run("millrace health ready")
		ready.Env = serve.Env
		return ready.Run() == nil
	}, "the sidecar is ready")

	doctor := run(block["doctor.sh"], "ADMIN:PASSWORD@HOST", admin.Name+":"+admin.Password+"@"+amqp, "https://HOST", "https://"+management)
	doctor.Env = serve.Env
	out, err = doctor.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `ok +management API +answers, and is this broker's`, string(out))
	require.Regexp(t, `ok +policies`, string(out))
}
