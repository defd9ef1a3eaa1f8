package broker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMaskURL(t *testing.T) {
	for raw, want := range map[string]string{
		"amqp://user:secret@host:5672/vhost":     "amqp://user:***@host:5672/vhost",
		"amqp://user:se:c@ret@host/":             "amqp://user:***@host/",
		"amqp://user:12/34@host/":                "amqp://user:***@host/",
		"amqp://user:se#cr?et@host/":             "amqp://user:***@host/",
		"user:secret@host":                       "user:***@host",
		"amqp://user@host/":                      "amqp://user@host/",
		"amqp://host:5672/vhost":                 "amqp://host:5672/vhost",
		"amqp://:secret@host":                    "amqp://:***@host",
		"":                                       "",
		"http://u:p%40ss@[::1]:15672/?a=b#c":     "http://u:***@[::1]:15672/?a=b#c",
		"amqps://u:p@h/v?cacertfile=/etc/ca.pem": "amqps://u:***@h/v?cacertfile=/etc/ca.pem",
	} {
		require.Equal(t, want, MaskURL(raw))
	}
}

func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		product, version string
		timeout, streams bool
	}{
		{RabbitMQ, "3.10.8", false, false},
		{RabbitMQ, "3.12.0", true, false},
		{RabbitMQ, "4.3.6", true, true},
		{RabbitMQ, "10.0", true, true},
		{RabbitMQ, "4", true, true},
		{"", "", false, false},
		{LavinMQ, "2.9.1", false, true},
	} {
		f := FeaturesOf(c.product, c.version)
		require.Equal(t, c.timeout, f.ConsumerTimeoutPolicy, c)
		require.Equal(t, c.streams, f.DeadLettersToStream, c)
		require.Equal(t, c.product != LavinMQ, f.NativeStreamProtocol, c)
	}
}

func TestHeaderNames(t *testing.T) {
	for _, good := range []string{"millrace-op", "traceparent", strings.Repeat("a", 255)} {
		require.True(t, headerName(good), good)
	}
	for _, bad := range []string{"", "X-Death", "a b", "tab\t", "CC", "\x7f", strings.Repeat("a", 256)} {
		require.False(t, headerName(bad), bad)
	}
}
