package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with the command line is said before anything is moved.
func TestBridgeRefusesWrongFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--keep", "Report"}, 2, "CLASS=QUEUE"},
		{[]string{"--keep", "Report=legacy"}, 2, "--to-sidekiq"},
		{[]string{"--queue", "a", "--to-sidekiq", "a"}, 2, "both sides"},
		{[]string{"--redis-url", "localhost:6379:secret"}, 2, "--redis-url: write redis://"},
		{[]string{"--redis-url", "redis://:secret@127.0.0.1:1", "--dry-run"}, 1, "Redis at 127.0.0.1:1"},
		{[]string{"--redis-url", "redis://:secret@127.0.0.1:1"}, 1, "Redis at 127.0.0.1:1"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"bridge", "sidekiq"}, c.args...), &stdout, &stderr)
		require.Equal(t, c.code, code, "%v: %s", c.args, stderr.String())
		require.Contains(t, stderr.String(), c.says, "%v", c.args)
		require.NotContains(t, stderr.String(), "secret")
	}
}
