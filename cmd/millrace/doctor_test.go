package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli"
)

func doctorFor(t *testing.T, u *brokertest.User, more ...string) result {
	t.Helper()
	return millrace(t, append([]string{"doctor", "--amqp-url", u.AMQPURL(), "--management-url", u.ManagementURL(), "--http-addr", "127.0.0.1:1"}, more...)...)
}

func TestDoctorFindsNoFaults(t *testing.T) {
	v := brokertest.New(t)
	admin := v.AddUser(t, "admin", brokertest.Permissions{Tags: "administrator"})
	settings := beside(v)
	settings.AMQPURL, settings.ManagementURL, settings.StreamURL = admin.AMQPURL(), admin.ManagementURL(), ""
	s := start(t, settings)
	s.leads(t)

	f := v.Features(t)
	read, latency := "with the native stream protocol", `ok    latency         one record takes`
	if !f.NativeStreamProtocol {
		read = "over AMQP 0-9-1, the one protocol"
	}
	r := doctorFor(t, admin, s.flags...)
	if f.HoldsSmallFramesBack && r.code != 0 { // unless a policy says otherwise
		latency = `FAIL  latency         one record takes`
		require.Contains(t, r.out, "set tcp_nodelay = true")
	}
	require.Equal(t, strings.Count(latency, "FAIL"), strings.Count(r.out, "FAIL"), r.out)
	for _, line := range []string{
		`ok    broker          ` + f.Product + ` \S+ at \S+:\*\*\*@\S+, virtual host ` + v.Name + `, as user ` + admin.Name,
		`ok    management API  answers, and is this broker's`,
		`ok    permissions     user ` + admin.Name + ` may do all that a sidecar does`,
		`ok    policies `,
		`ok    user            no client shares`,
		`(ok|note)  +clocks`,
		`ok    streams         are read ` + read,
		latency,
		`ok    sidecar         runs at \S+ for virtual host ` + v.Name + `: leading`,
		`note  permissions     user ` + v.Owner.Name + ` may declare jobs.leader`,
	} {
		require.Regexp(t, line, r.out)
	}
	require.NotContains(t, r.out, "Permissions that each needs", "none is missing")
	require.NotContains(t, r.out, admin.Password)
}

// Doctor reports a broker that it cannot reach as a finding, and not as an error of its own.
// Programs get it as a list.
func TestDoctorWithoutBroker(t *testing.T) {
	const nowhere = "amqp://127.0.0.1:1"
	r := millrace(t, "doctor", "--amqp-url", nowhere)
	require.Equal(t, cli.ExitFailed, r.code)
	require.Regexp(t, `^FAIL  broker          .*refused\n +→ start the broker, or say where it is with --amqp-url`, r.out)
	require.NotContains(t, r.out, "Permissions that each needs", "permissions are not the fault")
	require.Empty(t, r.err)
	require.Regexp(t, `(?s)Permissions that each needs.*sidecar \(.*\n    configure .*producer \(.*worker \(`, millrace(t, "doctor", "--permissions", "--amqp-url", nowhere).out)
	require.Equal(t, "FAIL", gjson.Get(millrace(t, "doctor", "-o", "json", "--amqp-url", nowhere).out, "0.status").String())
}
