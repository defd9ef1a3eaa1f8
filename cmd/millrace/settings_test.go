package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
)

// settingsOf returns the settings that `millrace config` prints.
func settingsOf(t *testing.T, args ...string) map[string]any {
	t.Helper()
	r := millrace(t, append([]string{"config"}, args...)...)
	require.Zero(t, r.code, r.err)
	var said map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(r.out), &said))
	return said
}

func TestPrecedenceOfSettings(t *testing.T) {
	config := clitest.File(t, "max-queues: 3\nlog-level: debug\non-gap: fire\n")
	t.Setenv("MILLRACE_LOG_LEVEL", "warn")
	t.Setenv("MILLRACE_ON_GAP", "discard")

	s := settingsOf(t, "--config", config, "--on-gap", "hold")

	require.Equal(t, "text", s["log-format"], "default")
	require.Equal(t, 3, s["max-queues"], "file")
	require.Equal(t, "warn", s["log-level"], "environment over file")
	require.Equal(t, "hold", s["on-gap"], "flag over all")
}

func TestConfigFileFromEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_CONFIG", clitest.File(t, "identity: blue\ntrusted-users: [ann, 'b,ob']\n"))
	s := settingsOf(t)
	require.Equal(t, "blue", s["identity"])
	require.Equal(t, []any{"ann", "b,ob"}, s["trusted-users"])
}

func TestConfigFileMayHaveSettingsOfOtherCommands(t *testing.T) {
	config := clitest.File(t, "max-queues: 3\nhttp-addr: 127.0.0.1:1\n")
	r := millrace(t, "dead", "--config", config)
	require.Equal(t, cli.ExitFailed, r.code)
	require.Contains(t, r.err, "no sidecar answers at http://127.0.0.1:1:")
}

func TestInvalidConfigFiles(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"unknown key":         {"max-queue: 3\n", `there is no setting "max-queue", did you mean "max-queues"?`},
		"underscores":         {"amqp_url: x\n", `did you mean "amqp-url"?`},
		"not a setting":       {"fresh: true\n", `there is no setting "fresh"`},
		"the file itself":     {"config: x\n", `there is no setting "config"`},
		"value of wrong type": {"max-queues: many\n", "max-queues"},
		"not one of those":    {"log-level: loud\n", "must be one of"},
		"nested":              {"amqp-url: {host: x}\n", "line 1: amqp-url must be a plain value or a list"},
		"nested in list":      {"trusted-users: [{}]\n", "must be a list of plain values"},
		"no mapping":          {"- a\n", "configuration file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := millrace(t, "config", "--config", clitest.File(t, test.text))
			require.Equal(t, cli.ExitUsage, r.code)
			require.Contains(t, r.err, test.says)
			require.Empty(t, r.out)
		})
	}
	t.Run("empty", func(t *testing.T) {
		require.Zero(t, millrace(t, "config", "--config", clitest.File(t, "")).code)
	})
	t.Run("missing", func(t *testing.T) {
		r := millrace(t, "config", "--config", "/nowhere/millrace.yaml")
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "/nowhere/millrace.yaml")
	})
}

func TestEverySettingHasThreeForms(t *testing.T) {
	var root commands
	parser, err := program().Parser(&root, io.Discard, io.Discard)
	require.NoError(t, err)
	settings := map[string]bool{}
	require.NoError(t, kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, isFlag := node.(*kong.Flag); isFlag && len(flag.Envs) > 0 {
			settings[flag.Name] = true
			require.Equal(t, []string{"MILLRACE_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))}, flag.Envs)
		}
		return next(nil)
	}))
	delete(settings, "config")
	require.ElementsMatch(t, slices.Collect(maps.Keys(settings)), slices.Collect(maps.Keys(settingsOf(t))), "millrace config prints them all")
}

func TestConfigAsJSON(t *testing.T) {
	settings := func(form string) string {
		r := millrace(t, "config", "--max-queues", "7", "--trusted-users", "ann", "--amqp-url", "amqp://ann:s3cret@broker/v", "-o", form)
		require.Zero(t, r.code, r.err)
		return r.out
	}
	said := settings("json")
	require.True(t, gjson.Valid(said), said)
	require.EqualValues(t, 7, gjson.Get(said, "max-queues").Int())
	require.Equal(t, "ann", gjson.Get(said, "trusted-users.0").String())
	require.Equal(t, "amqp://ann:***@broker/v", gjson.Get(said, "amqp-url").String())
	require.Contains(t, settings("csv"), "max-queues,7\n")
	require.Regexp(t, "^setting,value\n", settings("csv"))
}

func TestPasswordsAreMasked(t *testing.T) {
	r := millrace(t, "config", "--amqp-url", "amqp://ann:s3cret@broker/v", "--management-url", "http://broker:1", "--stream-url", "rabbitmq-stream://bob:s3cret@broker:2")
	require.Zero(t, r.code, r.err)
	require.NotContains(t, r.out, "s3cret")
	require.Contains(t, r.out, "amqp-url: amqp://ann:***@broker/v")
	require.Contains(t, r.out, "management-url: http://ann:***@broker:1")
	require.Contains(t, r.out, "stream-url: rabbitmq-stream://bob:***@broker:2/v")
}

func TestPasswordFromAFile(t *testing.T) {
	var s flags.Broker
	s.AMQPURL, s.AMQPPasswordFile = "amqp://ann@broker/v", clitest.File(t, "p@ss/word\n")
	require.NoError(t, s.AfterApply())
	require.Equal(t, "amqp://ann:p%40ss%2Fword@broker/v", s.AMQPURL)

	r := millrace(t, "config", "--amqp-password-file", "/nowhere")
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "--amqp-password-file")
}

func TestPasswordFromEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_AMQP_PASSWORD", "p@s/s#w%rd:?")
	r := millrace(t, "config", "--amqp-url", "amqp://ann:other@broker/v")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "amqp-url: amqp://ann:***@broker/v\n")
	require.NotContains(t, r.out, "p@s")

	r = millrace(t, "config", "--amqp-password-file", clitest.File(t, "x"))
	require.Equal(t, cli.ExitUsage, r.code)
	require.Contains(t, r.err, "--amqp-password and --amqp-password-file cannot be used together")
}

func TestURLsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"--amqp-url", "http://ann:s3cret@broker"},
		{"--amqp-url", "amqp://ann:s3%zzcret@broker"},
		{"--amqp-url", "s3cret"},
		{"--management-url", "broker:15672"},
		{"--stream-url", "http://s3cret@broker:15672"},
	} {
		r := millrace(t, append([]string{"config"}, args...)...)
		require.Equal(t, cli.ExitUsage, r.code, args)
		require.Contains(t, r.err, args[0]+": must be ")
		require.NotContains(t, r.err, "s3cret")
	}
}

func TestDefaultsFromAMQPURL(t *testing.T) {
	for _, test := range []struct{ url, identity, vhost, user, management string }{
		{"amqp://localhost", "localhost:5672/%2F", "/", "guest", "http://guest:guest@localhost:15672"},
		{"amqp://guest:guest@LOCALHOST:5672/", "localhost:5672/%2F", "/", "guest", "http://guest:guest@localhost:15672"},
		{"amqp://localhost/%2F", "localhost:5672/%2F", "/", "guest", "http://guest:guest@localhost:15672"},
		{"amqp://localhost:5673", "localhost:5673/%2F", "/", "guest", "http://guest:guest@localhost:15673"},
		{"amqps://ann:pw@h:5681/v", "h:5681/v", "v", "ann", "https://ann:pw@h:15681"},
		{"amqp://localhost:60000", "localhost:60000/%2F", "/", "guest", "http://guest:guest@localhost:15672"},
		{"amqps://ann:pw@h/a%2Fb", "h:5671/a%2Fb", "a/b", "ann", "https://ann:pw@h:15671"},
		{"amqp://ann:@[::1]:1/v", "[::1]:1/v", "v", "ann", "http://ann:@[::1]:10001"},
		{"amqp://ann:pw@b:2,[::1],a,a:3/v", "[::1]:5672,a:3,a:5672,b:2/v", "v", "ann", "http://ann:pw@b:10002,[::1]:15672,a:15672,a:10003"},
	} {
		s := sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: test.url}}}
		require.NoError(t, s.AfterApply(), test.url)
		require.Equal(t, test.identity, s.brokerIdentity())
		require.Equal(t, test.vhost, s.vhost())
		require.Equal(t, test.user, s.user())
		broker := s.Connect(nil, nil)
		require.Equal(t, test.management, strings.ToLower(broker.Management()))
	}
}

func TestSeveralHosts(t *testing.T) {
	const want = "amqp://ann:***@a:1,b,c:2/v"
	check := func(args ...string) {
		t.Helper()
		require.Equal(t, want, settingsOf(t, args...)["amqp-url"])
	}
	check("--amqp-url", "amqp://ann:pw@a:1,b,c:2/v")
	check("--amqp-url", "amqp://ann:pw@a:1/v", "--amqp-url", "amqp://ann:pw@b/v", "--amqp-url", "amqp://ann:pw@c:2/v")
	check("--amqp-url", "amqp://ann:pw@a:1,b/v", "--amqp-url", "amqp://ann:pw@c:2/v")
	check("--config", clitest.File(t, "amqp-url: amqp://ann:pw@a:1,b,c:2/v\n"))
	check("--config", clitest.File(t, "amqp-url:\n  - amqp://ann:pw@a:1,b/v\n  - amqp://ann:pw@c:2/v\n"))
	check("--amqp-url", "amqp://ann@a:1,b,c:2/v", "--amqp-password-file", clitest.File(t, "pw"))
	t.Setenv("MILLRACE_AMQP_URL", "amqp://ann:pw@a:1,b,c:2/v")
	check()
	t.Setenv("MILLRACE_AMQP_URL", "amqp://ann:pw@a:1,b/v,amqp://ann:pw@c:2/v")
	check()

	s := settingsOf(t, "--management-url", "http://a:1,b:2", "--stream-url", "rabbitmq-stream://a", "--stream-url", "rabbitmq-stream://b")
	require.Equal(t, "http://ann:***@a:1,b:2", s["management-url"])
	require.Equal(t, "rabbitmq-stream://ann:***@a,b/v", s["stream-url"])
}

func TestInvalidHostLists(t *testing.T) {
	for _, test := range []struct{ flag, first, second, says string }{
		{"--amqp-url", "amqp://ann:s3cret@a/v", "amqps://ann:s3cret@b/v", "differ in their schemes"},
		{"--amqp-url", "amqp://ann:s3cret@a/v", "amqp://ann:s3cre7@b/v", "differ in their users or passwords"},
		{"--amqp-url", "amqp://ann:s3cret@a/v", "amqp://ann:s3cret@b/w", "differ in their virtual hosts"},
		{"--amqp-url", "amqp://ann:s3cret@a/v", "amqp://ann:s3cret@b,,c/v", "a comma too many"},
		{"--amqp-url", "amqp://ann:s3cret@a/v", "amqp://ann:s3cret@/v", "must be amqp://"},
		{"--amqp-url", "amqp://ann:s3cret@a/v", "", "a comma too many"},
		{"--management-url", "http://ann:s3cret@a:1", "http://ann:s3cret@b:1/x", "differ in their paths"},
		{"--stream-url", "rabbitmq-stream://ann:s3cret@a", "rabbitmq-stream+tls://ann:s3cret@b", "differ in their schemes"},
	} {
		r := millrace(t, "config", test.flag, test.first, test.flag, test.second)
		require.Equal(t, cli.ExitUsage, r.code, test)
		require.Contains(t, r.err, test.flag+": ", test)
		require.Contains(t, r.err, test.says, test)
		require.NotContains(t, r.err, "s3cre", test)
	}
}

func TestStreamURLDefaultsFromAMQPURL(t *testing.T) {
	for given, want := range map[string]string{
		"rabbitmq-stream://h:5552":           "rabbitmq-stream://ann:pw@h:5552/a%2Fb",
		"rabbitmq-stream://h:5552/":          "rabbitmq-stream://ann:pw@h:5552/a%2Fb",
		"rabbitmq-stream+tls://bob:x@h/c%2F": "rabbitmq-stream+tls://bob:x@h/c%2F",
	} {
		s := sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: "amqp://ann:pw@h/a%2Fb"}}, StreamURL: given}
		require.NoError(t, s.AfterApply())
		require.Equal(t, want, s.StreamURL)
	}
}

func TestDefaultIdentity(t *testing.T) {
	var s sidecarSettings
	require.Regexp(t, `^.+:\d+$`, s.identity())
	s.Identity = "blue"
	require.Equal(t, "blue", s.identity())
}

// A private broker that comes back on other ports is the same broker, and keeps its view.
func TestPrivateBrokerKeepsItsView(t *testing.T) {
	identity := func(amqpURL string) string {
		s := sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: amqpURL}}, private: true}
		require.NoError(t, s.AfterApply())
		return s.brokerIdentity()
	}
	require.Equal(t, identity("amqp://127.0.0.1:5672/"), identity("amqp://127.0.0.1:5674/"))
	require.NotEqual(t, identity("amqp://127.0.0.1:5672/"), identity("amqp://127.0.0.1:5672/other"))
}

// By default, a job may wait for ten minutes. A limit for one queue does not change the others.
func TestWaitLimits(t *testing.T) {
	for _, c := range []struct {
		given    map[string]time.Duration
		own, any time.Duration
	}{
		{nil, 10 * time.Minute, 10 * time.Minute},
		{map[string]time.Duration{"critical": 5 * time.Second}, 5 * time.Second, 10 * time.Minute},
		{map[string]time.Duration{"*": time.Hour}, time.Hour, time.Hour},
		{map[string]time.Duration{"*": 0, "critical": time.Second}, time.Second, 0},
	} {
		s := sidecarSettings{QueueSLO: c.given}
		require.Equal(t, c.own, s.queueSLO("critical"))
		require.Equal(t, c.any, s.queueSLO("low"))
	}
}
