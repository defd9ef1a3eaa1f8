package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// TestSidecarReadsVectors has the sidecar's own parsers read the heartbeats and metrics that all clients write.
func TestSidecarReadsVectors(t *testing.T) {
	own := map[string]any{"identity": "host:7:", "hostname": "host", "pid": 7, "beat": 1700000000.5, "rss_kb": 1, "started_at": 1699999999.5}
	for _, c := range vectors(t, "heartbeat.json") {
		text := c.Get("heartbeat").Raw
		for name, value := range own {
			var err error
			text, err = sjson.Set(text, name, value)
			require.NoError(t, err)
		}
		beat, err := wire.ParseHeartbeat([]byte(text))
		require.NoError(t, err, c.Get("name"))
		require.Equal(t, c.Get("heartbeat.state").String(), beat.State)
		require.EqualValues(t, c.Get("heartbeat.concurrency").Int(), beat.Concurrency)
	}
	for _, c := range vectors(t, "metrics.json") {
		require.NoError(t, wire.CheckMetrics([]byte("["+c.Get("metric").Raw+"]")), c.Get("name"))
	}
}

func vectors(t *testing.T, file string) []gjson.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("vectors", file))
	require.NoError(t, err)
	cases := gjson.ParseBytes(text).Array()
	require.NotEmpty(t, cases)
	return cases
}
