package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

// ask sends a request to a sidecar with a user's URL of the API.
func (r *running) ask(t *testing.T, user *brokertest.User, line ...string) result {
	t.Helper()
	url := strings.Replace(r.api.Address(), "://", "://"+user.Name+":"+user.Password+"@", 1)
	return millrace(t, append(line, "--api-url", url)...)
}

func TestBrokerUsersSignIn(t *testing.T) {
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	schedule := millrace(t, "schedule", "Mail", `[{"password":"hunter2"}]`, "--in", "1h", "--amqp-url", v.AMQPURL())
	require.Zero(t, schedule.code, schedule.err)
	jid := strings.TrimSpace(schedule.out)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(millrace(t, append([]string{"scheduled"}, s.flags...)...).out, jid)
	}, "it is listed")

	may := map[string]struct{ look, act string }{
		"monitoring":    {"", "it needs management, policymaker or administrator"},
		"management":    {"", ""},
		"policymaker":   {"", ""},
		"administrator": {"", ""},
		"":              {"needs one of the tags", "needs one of the tags"},
		"impersonator":  {"", ""}, // checked below: brokers report different things
	}
	if v.Features(t).TaglessAreUnknown {
		may[""] = struct{ look, act string }{"invalid user name or password", "invalid user name or password"}
	}
	for tag, says := range may {
		user := v.AddUser(t, "signs-in", brokertest.Permissions{Tags: tag})
		look, act := s.ask(t, user, "scheduled"), s.ask(t, user, "scheduled", "delete", "nothing", "--yes")
		if tag == "impersonator" {
			require.NotZero(t, look.code)
			continue
		}
		require.Equal(t, says.look == "", look.code == 0, "%s: %s", tag, look.err)
		require.Contains(t, look.err, says.look, tag)
		if says.act == "" {
			says.act = "no entry of scheduled_jobs has this jid"
			require.NotContains(t, act.err, "it needs")
			require.NotContains(t, act.err, "sign in")
			continue
		}
		require.Contains(t, act.err, says.act, tag)
	}

	other := brokertest.New(t)
	stranger := other.AddUser(t, "elsewhere", brokertest.Permissions{Tags: "policymaker,monitoring"})
	require.Contains(t, s.ask(t, stranger, "scheduled").err, "may not use this virtual host")
	wrong := *v.Owner
	wrong.Password = "wrong"
	require.Contains(t, s.ask(t, &wrong, "scheduled").err, "invalid user name or password")
	require.Contains(t, millrace(t, "scheduled", "--http-addr", strings.TrimPrefix(s.api.Address(), "http://"), "--amqp-url", "amqp://unknown:x@127.0.0.1/").err, "invalid user name or password")
	require.Equal(t, http.StatusUnauthorized, s.status(t, "/api/overview"))
	require.Equal(t, http.StatusUnauthorized, s.status(t, "/metrics"))
	require.Equal(t, http.StatusOK, s.status(t, "/healthz"))

	ann := v.AddUser(t, "ann", brokertest.Permissions{Tags: "management"})
	require.Zero(t, s.ask(t, ann, "scheduled", "delete", jid, "--reason", "test", "--yes").code)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(s.ask(t, ann, "scheduled", "show", jid).err, "was deleted by "+ann.Name)
	}, "the journal names who did it")
	require.NotContains(t, s.log.String(), ann.Password)
	require.NotContains(t, s.log.String(), v.Owner.Password)
}

func TestReadOnlyAndHiddenArguments(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.ReadOnly, settings.HideArgs = true, "passw"
	s := start(t, settings)
	s.leads(t)
	r := millrace(t, "schedule", "Mail", `[{"password":"hunter2"}]`, "--in", "1h", "--amqp-url", v.AMQPURL())
	jid := strings.TrimSpace(r.out)
	viewer := v.AddUser(t, "viewer", brokertest.Permissions{Tags: "monitoring"})
	brokertest.Eventually(t, func() bool { return strings.Contains(s.ask(t, viewer, "scheduled", "show", jid).out, "[hidden]") }, "it is hidden")
	require.Contains(t, s.ask(t, v.Owner, "scheduled", "show", jid).out, "hunter2")
	require.Contains(t, s.ask(t, v.Owner, "scheduled", "delete", jid, "--yes").err, "read-only")
}

func TestTokensFromFile(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.Auth, settings.TokensFile = "token", clitest.File(t, fmt.Sprintf("ann administrator %x\n", sha256.Sum256([]byte("t0ken"))))
	s := start(t, settings)
	s.ready(t)
	flags := []string{"--http-addr", strings.TrimPrefix(s.api.Address(), "http://"), "--api-token-file"}
	require.Zero(t, millrace(t, append([]string{"dead"}, append(flags, clitest.File(t, "t0ken\n"))...)...).code)
	require.Contains(t, millrace(t, append([]string{"dead"}, append(flags, clitest.File(t, "other"))...)...).err, "invalid access token")
	require.Contains(t, millrace(t, append([]string{"dead"}, append(flags, "/nowhere")...)...).err, "--api-token-file")
}

func TestNoSignInOnLoopbackWithoutManagementAPI(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.ManagementURL = ""
	s := start(t, settings) // nothing listens on the broker host's port 15672, or something that does not know this user
	brokertest.Eventually(t, func() bool { return s.status(t, "/api/overview") != http.StatusServiceUnavailable }, "it is found out")
	require.Contains(t, []int{http.StatusOK, http.StatusUnauthorized}, s.status(t, "/api/overview"))
}

func TestInvalidSecuritySettings(t *testing.T) {
	for name, args := range map[string][]string{
		"--tls-cert":           {"--tls-cert", "x"},
		"--tokens-file":        {"--auth", "token"},
		"--auth-header-key":    {"--auth", "header"},
		"needs --auth=header":  {"--auth-header-key", strings.Repeat("k", 32)},
		"it has 31 bytes":      {"--auth", "header", "--auth-header-key", strings.Repeat("k", 31)},
		"--http-prefix":        {"--http-prefix", "x"},
		"--cors-allow-origins": {"--cors-allow-origins", "*"},
		"--hide-args":          {"--hide-args", "("},
		"--auth":               {"--auth", "basic"},
	} {
		r := millrace(t, append([]string{"config"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code, name)
		require.Contains(t, r.err, name)
	}
	for says, args := range map[string][]string{
		"--tls-cert, --tls-key": {"--tls-cert", "/nowhere", "--tls-key", "/nowhere"},
		"--session-key-file":    {"--session-key-file", "/nowhere"},
		"and must have 32":      {"--session-key-file", clitest.File(t, "short")},
		"--tokens-file":         {"--auth", "token", "--tokens-file", "/nowhere"},
		"without TLS: set --tls-cert and --tls-key, or": {"--http-addr", "0.0.0.0:0"},
		"without authentication and TLS: set --auth to broker or token, --tls-cert and --tls-key, or --behind-proxy if a proxy authenticates users and terminates TLS;": {
			"--http-addr", "0.0.0.0:0", "--auth", "none"},
	} {
		r := millrace(t, append([]string{"serve", "--amqp-url", "amqp://127.0.0.1:1/", "--http-addr", "127.0.0.1:0"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code, says)
		require.Contains(t, r.err, says)
	}
}

func TestPasswordsAreSentOnlyOverLoopbackOrTLS(t *testing.T) {
	for _, args := range [][]string{{"--api-url", "http://jobs.example:15680"}, {"--http-addr", "192.0.2.1:15680"}, {"--api-url", "http://ann:pw@[2001:db8::1]:1"}} {
		r := millrace(t, append([]string{"dead"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "without TLS: use https:// in --api-url")
		require.NotContains(t, r.err, "pw")
	}
	for _, faulty := range []string{"jobs.example", "ftp://x", "https://"} {
		require.Contains(t, millrace(t, "dead", "--api-url", faulty).err, "invalid --api-url")
	}
	require.Contains(t, millrace(t, "dead", "--api-password-file", "/nowhere").err, "--api-password-file")
	require.Contains(t, millrace(t, "config", "--api-url", "https://ann:s3cret@x/").out, "api-url: https://ann:***@x/")
	require.Contains(t, millrace(t, "config", "--auth", "header", "--auth-header-key", strings.Repeat("k", 32)).out, "auth-header-key: '***'")
}

func TestSessionsSurviveRestart(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.SessionKeyFile = filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(settings.SessionKeyFile, []byte(strings.Repeat("k", 32)), 0o600))
	in := fmt.Sprintf(`{"name":%q,"password":%q}`, v.Owner.Name, v.Owner.Password)
	first := start(t, settings)
	resp, err := first.api.HTTP.Post(first.api.Address()+"/api/session", "application/json", strings.NewReader(in))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	cookie := resp.Cookies()[0]
	first.api.HTTP.CloseIdleConnections()
	require.NoError(t, first.end())

	second := start(t, settings)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, second.api.Address()+"/api/whoami", http.NoBody)
	require.NoError(t, err)
	req.AddCookie(cookie)
	resp, err = second.api.HTTP.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	defer second.api.HTTP.CloseIdleConnections()
	var body [1000]byte
	n, _ := resp.Body.Read(body[:])
	require.Equal(t, "policymaker", gjson.GetBytes(body[:n], "role").String())
	require.InDelta(t, time.Now().Add(8*time.Hour).Unix(), gjson.GetBytes(body[:n], "session_ends").Int(), 600)
}
