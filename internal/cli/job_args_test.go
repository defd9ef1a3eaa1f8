package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func TestArgumentsReachTheJobByteForByte(t *testing.T) {
	const args = `[9007199254740993,1e400,"\u0000é <&>",{"b":1,"a":2}]`
	a := jobFlags{Class: "Mail", Args: args, Queue: "default", Retry: 3, Priority: 7, Tag: []string{"x", "y"}}
	now := time.Unix(1798135200, 0)
	j, err := a.job(now)
	require.NoError(t, err)
	body, err := encode(j)
	require.NoError(t, err)

	require.Equal(t, args, gjson.GetBytes(body, "args").Raw)
	parsed, err := wire.ParseJob(body)
	require.NoError(t, err)
	require.Equal(t, "Mail", parsed.Class)
	require.Equal(t, 3, parsed.Retry)
	require.Equal(t, uint8(7), parsed.Priority)
	require.Equal(t, []string{"x", "y"}, parsed.Tags)
	require.Len(t, parsed.JID, 32)
}

func TestInvalidJobIsRefusedBeforeConnecting(t *testing.T) {
	nowhere := "amqp://127.0.0.1:1"
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"an object":     {[]string{"enqueue", "Mail", `{"a":1}`}, "arguments must be a JSON array"},
		"null":          {[]string{"enqueue", "Mail", `null`}, "arguments must be a JSON array"},
		"no JSON":       {[]string{"enqueue", "Mail", `[ann]`}, "invalid character 'a' looking for beginning of value at character 2"},
		"two arrays":    {[]string{"enqueue", "Mail", `[] []`}, "arguments must be a JSON array"},
		"no class":      {[]string{"enqueue", ""}, "class"},
		"priority":      {[]string{"enqueue", "Mail", "--priority", "11"}, "priority"},
		"retry":         {[]string{"enqueue", "Mail", "--retry=-1"}, "retry"},
		"queue":         {[]string{"enqueue", "Mail", "--queue", "a\nb"}, "control character"},
		"no time":       {[]string{"schedule", "Mail"}, "--at"},
		"two times":     {[]string{"schedule", "Mail", "--at", "18:00", "--in", "3s"}, "--at"},
		"bad time":      {[]string{"schedule", "Mail", "--at", "soon"}, "--at: invalid time \"soon\""},
		"bad duration":  {[]string{"schedule", "Mail", "--in", "soon"}, "--in: invalid duration \"soon\""},
		"scheduled job": {[]string{"schedule", "Mail", "x", "--in", "3s"}, "arguments must be a JSON array"},
	} {
		t.Run(name, func(t *testing.T) {
			r := millrace(t, append(test.args, "--amqp-url", nowhere)...)
			require.Equal(t, ExitUsage, r.code)
			require.Contains(t, r.err, test.says)
			require.NotContains(t, r.err, "127.0.0.1:1")
			require.Empty(t, r.out)
		})
	}
}
