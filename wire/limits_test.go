package wire

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

// padded returns JSON with spaces before its last byte, n bytes long.
func padded(body string, n int) []byte {
	end := len(body) - 1
	return []byte(body[:end] + strings.Repeat(" ", n-len(body)) + body[end:])
}

// docs/wire-format.md lists the limits. Each limit is accepted, and the next larger value is not.
func TestDocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/wire-format.md")
	require.NoError(t, err)
	entry := func(body []byte) error {
		_, err := ParseEntry(ScheduledJobs, 0, body)
		return err
	}
	job := func(body []byte) error {
		_, err := ParseJob(body)
		return err
	}
	command := func(body []byte) error {
		_, err := ParseCommand(body)
		return err
	}
	text := func(format string) func(int) []byte {
		return func(n int) []byte { return fmt.Appendf(nil, format, strings.Repeat("x", n)) }
	}
	number := func(format string) func(int) []byte { return func(n int) []byte { return fmt.Appendf(nil, format, n) } }
	for says, c := range map[string]struct {
		limit int
		make  func(n int) []byte
		read  func([]byte) error
	}{
		"| 16 MiB (16,777,216 bytes) |": {16 << 20, func(n int) []byte { return padded(`{"class":"C","jid":"a"}`, n) }, job},
		"(16,777,152)":                  {16<<20 - 64, func(n int) []byte { return padded(`{"scheduled_at":1,"job":{"class":"C"}}`, n) }, entry},
		"| 9,998 levels |": {9998, func(n int) []byte {
			return []byte(`{"scheduled_at":1,"job":{"class":"C","args":` + nested(n-2) + `}}`)
		}, entry},
		"| 9,997 levels:":                       {9997, func(n int) []byte { return []byte(`{"class":"C","args":` + nested(n-1) + `}`) }, job},
		"| 10,000 levels |":                     {10000, func(n int) []byte { return []byte(`{"identity":"a","beat":1,"x":` + nested(n-1) + `}`) }, CheckHeartbeat},
		"| 200 bytes |":                         {200, text(`{"class":"C","queue":"%s"}`), job},
		"`retry_count` | 2,147,483,648":         {1 << 31, number(`{"class":"C","retry_count":%d}`), job},
		"`retry`, `retry_count` |":              {1 << 31, number(`{"class":"C","retry":%d}`), job},
		"`priority` | 10 |":                     {10, number(`{"class":"C","priority":%d}`), job},
		"| 1,024 bytes |":                       {1024, text(`{"identity":"%s","beat":1}`), CheckHeartbeat},
		"| a command | 1 MiB |":                 {1 << 20, func(n int) []byte { return padded(`{"command":"ping"}`, n) }, command},
		"255 characters of printable ASCII | a": {255, text(`{"command":"ping","id":"%s"}`), command},
		"`job_metrics` | 500 |": {500, func(n int) []byte {
			one := `,{"timestamp":1,"job_class":"C","status":"success"}`
			return []byte("[" + strings.Repeat(one, n)[1:] + "]")
		}, CheckMetrics},
	} {
		require.Contains(t, string(page), says)
		require.NoError(t, c.read(c.make(c.limit)), says)
		require.Error(t, c.read(c.make(c.limit+1)), says)
	}

	require.Contains(t, string(page), "the first 1,000 are read")
	read, err := ParseJob([]byte(`{"class":"C","tags":["x"` + strings.Repeat(`,"x"`, 1000) + `]}`))
	require.NoError(t, err)
	require.Len(t, read.Tags, 1000)

	require.Contains(t, string(page), "| 1 KiB, 64 KiB |")
	long := strings.Repeat("x", 100<<10)
	dead, err := ParseEntry(DeadJobs, 0, DeadJob(DeadEnvelope{JID: "a", ErrorClass: long, ErrorMessage: long}, []byte(`{"class":"C"}`)))
	require.NoError(t, err)
	require.Equal(t, long[:1<<10]+"…", dead.ErrorClass)
	require.Equal(t, long[:64<<10]+"…", dead.ErrorMessage)
}
