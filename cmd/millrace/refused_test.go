package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
)

func serveOnce(t *testing.T, amqpURL, managementURL string) result {
	t.Helper()
	return millrace(t, "serve", "--amqp-url", amqpURL, "--management-url", managementURL, "--http-addr", "127.0.0.1:0")
}

// A sidecar that cannot be helped by waiting ends at its first connection, with one error and the
// command that helps.
func TestServeEndsOnPermanentRefusal(t *testing.T) {
	v := brokertest.New(t)
	stranger := brokertest.New(t).Owner
	weak := v.AddUser(t, "weak", brokertest.Permissions{Configure: `^queue\.`, Tags: "policymaker,monitoring"})
	by := func(user, more string) string {
		return "amqp://" + user + v.AMQPURL()[strings.LastIndexByte(v.AMQPURL(), '@'):] + more
	}
	grant := "set_permissions --vhost '" + v.Name + "' '"
	for name, c := range map[string]struct {
		url  string
		says []string
	}{
		"wrong password": {by(v.Owner.Name+":wrong", ""), []string{`refused user "` + v.Owner.Name + `" or its password`, "→ check user and password in --amqp-url",
			"rabbitmqctl change_password '" + v.Owner.Name + "' PASSWORD   (LavinMQ: lavinmqctl "}},
		"of several hosts": {strings.Replace(by(v.Owner.Name+":wrong", ""), "@", "@127.0.0.1:1,", 1), []string{`refused user "` + v.Owner.Name + `" or its password`}},
		"no virtual host":  {v.AMQPURL() + "-not", []string{`has no virtual host "` + v.Name + `-not"`, "rabbitmqctl add_vhost '" + v.Name + "-not'", "lavinmqctl add_vhost"}},
		"no access":        {by(stranger.Name+":"+stranger.Password, ""), []string{`has no access to virtual host "` + v.Name + `"`, "rabbitmqctl " + grant + stranger.Name + "'"}},
		"no permissions": {weak.AMQPURL(), []string{`user "` + weak.Name + `" may not do what Millrace needs in virtual host "` + v.Name + `": configure jobs.direct, `,
			"→ give it the permissions: " + v.Features(t).Ctl + " " + grant + weak.Name + "'"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := serveOnce(t, c.url, v.ManagementURL())
			require.Equal(t, cli.ExitFailed, r.code)
			for _, says := range c.says {
				require.Equal(t, 1, strings.Count(r.err, says), "%s\n%s", says, r.err)
			}
			require.NotContains(t, r.err, "level=WARN")
			require.LessOrEqual(t, strings.Count(r.err, "\n"), 9, r.err)
			require.NotContains(t, r.err, ":wrong")
		})
	}
}

// A sidecar that may connect and declare, but may not write or read, names the missing permission
// and ends.
func TestServeEndsWithoutPermissions(t *testing.T) {
	v := brokertest.New(t)
	for right, p := range map[string]brokertest.Permissions{"write": {Write: `^$`}, "read": {Read: `^$`}} {
		t.Run(right, func(t *testing.T) {
			p.Tags = "policymaker,monitoring"
			u := v.AddUser(t, right, p)
			r := serveOnce(t, u.AMQPURL(), v.ManagementURL())
			require.Equal(t, cli.ExitFailed, r.code, r.err)
			require.Contains(t, r.err, `user "`+u.Name+`" may not do what Millrace needs in virtual host "`+v.Name+`": `+right+" ")
			require.Contains(t, r.err, "→ give it the permissions: "+v.Features(t).Ctl+" set_permissions --vhost '"+v.Name+"' '"+u.Name+"' '")
			require.LessOrEqual(t, strings.Count(r.err, "\n"), 20, r.err)
		})
	}
}

func TestIsForbidden(t *testing.T) {
	require.True(t, isForbidden(`Exception (403) Reason: "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost 'v' refused for user 'u'"`))
	require.False(t, isForbidden(`Exception (403) Reason: "ACCESS_REFUSED - queue limit in vhost 'v' (1) is reached"`))
	require.False(t, isForbidden("dial tcp 127.0.0.1:5672: connect: connection refused"))
	require.False(t, isForbidden(""))
}

// A sidecar that was connected before keeps trying when the broker refuses it later.
func TestSidecarRetriesLaterRefusal(t *testing.T) {
	v := brokertest.New(t)
	u := v.AddUser(t, "own", brokertest.Permissions{Tags: "policymaker,monitoring"})
	proxy := brokertest.NewProxy(t, u.AMQPURL())
	settings := beside(v)
	settings.AMQPURL, settings.ManagementURL, settings.Auth = proxy.URL(), v.ManagementURL(), "none"
	s := start(t, settings)
	s.ready(t)
	change := func(password string) {
		v.Do(t, http.MethodPut, "/api/users/"+u.Name, map[string]string{"password": password, "tags": "policymaker,monitoring"}, nil)
	}
	change("other")
	proxy.Cut(t)
	proxy.Heal(t)
	brokertest.Eventually(t, func() bool { return s.status(t, "/readyz") == http.StatusServiceUnavailable }, "it is not ready")
	time.Sleep(8 * time.Second) // a refusal takes RabbitMQ three seconds
	require.Equal(t, http.StatusOK, s.status(t, "/healthz"))
	change(u.Password)
	s.ready(t)
}

func TestUnprotectedAPIIsLogged(t *testing.T) {
	v := brokertest.New(t)
	settings := beside(v)
	settings.Auth = "none"
	s := start(t, settings)
	brokertest.Eventually(t, func() bool {
		return strings.Contains(s.log.String(), `level=WARN msg="millrace: auth=none: anyone on this machine can use the API`)
	}, "it is said")
	s.leads(t)
	closed := start(t, beside(v))
	closed.ready(t)
	require.NotContains(t, closed.log.String(), "auth=none")
}
