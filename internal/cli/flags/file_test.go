package flags

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"on-gap", "on-gap", 0}} {
		require.Equal(t, test.want, distance(test.a, test.b), "%s → %s", test.a, test.b)
	}
	require.Equal(t, "log-level", nearest("loglevel", []string{"log-format", "log-level", "on-gap"}))
	require.Empty(t, nearest("x", nil))
}

// command is a command line whose settings a file may have.
type command struct {
	Config kong.ConfigFlag
	Broker
	Users  []string `env:"MILLRACE_TEST_USERS"`
	Secret string   // no setting: it has no environment variable
}

func TestFileSetsDefaults(t *testing.T) {
	parse := func(text string, args ...string) (c command, err error) {
		parser, err := kong.New(&c, URLsMapper, kong.Configuration(ReadFile))
		require.NoError(t, err)
		_, err = parser.Parse(append(args, "--config", clitest.File(t, text)))
		return c, err
	}
	c, err := parse("amqp-url: [amqp://a:1, 'amqp://b']\nusers: [ann, 'b,ob']\n")
	require.NoError(t, err)
	require.Equal(t, "amqp://a:1,b", c.AMQPURL)
	require.Equal(t, []string{"ann", "b,ob"}, c.Users)
	c, err = parse("amqp-url: amqp://a", "--amqp-url", "amqp://b", "--amqp-url", "amqp://c")
	require.NoError(t, err)
	require.Equal(t, "amqp://b,c", c.AMQPURL)
	for text, says := range map[string]string{
		"amqp_url: x": `did you mean "amqp-url"?`, "secret: x": "there is no setting", "users: {a: b}": "line 1: users must be a plain value or a list",
		"users: [{}]": "must be a list of plain values", "- a": "configuration file",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, says)
	}
	t.Setenv("MILLRACE_TEST_USERS", "eve")
	c, err = parse("users: [ann]")
	require.NoError(t, err)
	require.Equal(t, []string{"eve"}, c.Users)
}
