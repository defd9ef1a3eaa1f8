package hosts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]struct {
		url   string
		hosts []string
	}{
		"amqp://h":                                        {"amqp://h", []string{"h:5672"}},
		"amqp://u:p@h:1/v":                                {"amqp://u:p@h:1/v", []string{"h:1"}},
		"amqp://u:p@a:1,b,[::1]:2,[::2]/v":                {"amqp://u:p@a:1,b,[::1]:2,[::2]/v", []string{"a:1", "b:5672", "[::1]:2", "[::2]:5672"}},
		"amqp://u:p@a, b/v":                               {"amqp://u:p@a,b/v", []string{"a:5672", "b:5672"}},
		"amqp://u:p@a,b,a/v":                              {"amqp://u:p@a,b/v", []string{"a:5672", "b:5672"}},
		"amqp://u:p%2C@a,b/a%2Cb?heartbeat=5":             {"amqp://u:p,@a,b/a%2Cb?heartbeat=5", []string{"a:5672", "b:5672"}},
		"amqp://u:p,q@a,b/v":                              {"amqp://u:p,q@a,b/v", []string{"a:5672", "b:5672"}},
		"amqp://u:p@a/v,amqp://u:p@b:2/v":                 {"amqp://u:p@a,b:2/v", []string{"a:5672", "b:2"}},
		"amqp://u:p@a,b/v, amqp://u:p@c/v":                {"amqp://u:p@a,b,c/v", []string{"a:5672", "b:5672", "c:5672"}},
		"amqp://a,amqp://b/,amqp://c/%2F":                 {"amqp://a,b,c", []string{"a:5672", "b:5672", "c:5672"}},
		"http://a:1/mq,http://b:1/mq":                     {"http://a:1,b:1/mq", []string{"a:1", "b:1"}},
		"rabbitmq-stream+tls://a,rabbitmq-stream+tls://b": {"rabbitmq-stream+tls://a,b", []string{"a:5672", "b:5672"}},
	} {
		u, err := Parse(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want.url, u.String(), raw)
		require.Equal(t, want.hosts, u.Addresses("5672"), raw)
		again, err := Parse(u.String())
		require.NoError(t, err)
		require.Equal(t, u, again)
	}
	u, err := Parse("amqps://u:p%40@a:1,b/v?x=y")
	require.NoError(t, err)
	require.Equal(t, "amqps://u:p%40@b/v?x=y", u.At("b"))
}

func TestParseFaults(t *testing.T) {
	for raw, says := range map[string]string{
		"":                         "malformed",
		"h":                        "malformed",
		"amqp://":                  "malformed",
		"amqp:///v":                "malformed",
		"amqp://u:secret@/v":       "malformed",
		"amqp://u:secret@a:x/v":    "malformed",
		"amqp://u:secret@a,b:x/v":  "malformed",
		"amqp://u:se%zzcret@a,b/v": "malformed",
		"amqp://u:secret@a,:1/v":   "malformed",
		"amqp://u:secret@a/v,":     "a comma too many",
		",amqp://u:secret@a/v":     "a comma too many",
		"amqp://u:secret@a/v,,amqp://u:secret@b/v": "a comma too many",
		"amqp://u:secret@a,,b/v":                   "a comma too many",
		"amqp://u:secret@,/v":                      "a comma too many",
		"amqp://u:secret@a,/v":                     "a comma too many",
		"amqp://u:secret@a/v,amqps://u:secret@b/v": "differ in their schemes",
		"amqp://u:secret@a/v,amqp://u:secret2@b/v": "differ in their users or passwords",
		"amqp://u:secret@a/v,amqp://b/v":           "differ in their users or passwords",
		"amqp://u:secret@a/v,amqp://u:secret@b/w":  "differ in their virtual hosts",
		"amqp://u:secret@a/v,amqp://u:secret@b":    "differ in their virtual hosts",
		"http://u:secret@a/v,http://u:secret@b":    "differ in their paths",
		"amqp://u:secret@a?x=y,amqp://u:secret@b":  "differ in their parameters",
	} {
		_, err := Parse(raw)
		require.ErrorContains(t, err, says, raw)
		require.NotContains(t, err.Error(), "secret", raw)
	}
}
