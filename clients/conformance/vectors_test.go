package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// The sidecar's parsers accept the delayed messages, heartbeats and metrics that all clients write.
func TestSidecarReadsVectors(t *testing.T) {
	own := map[string]any{"identity": "host:7", "hostname": "host", "pid": 7, "beat": 1700000000.5, "rss_kb": 1, "started_at": 1699999999.5}
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
	for _, c := range vectors(t, "messages.json") {
		if record := c.Get("record"); record.Exists() {
			_, err := wire.ParseEntry(wire.ScheduledJobs, 1, []byte(record.Raw))
			require.NoError(t, err, c.Get("name"))
		}
	}
	for _, c := range vectors(t, "metrics.json") {
		require.NoError(t, wire.CheckMetrics([]byte("["+c.Get("metric").Raw+"]")), c.Get("name"))
	}
}

// The leader takes exactly those governed queues that clients send.
func TestSidecarReadsQueues(t *testing.T) {
	for _, c := range vectors(t, "queues.json") {
		err := (&wire.Definitions{Queues: []json.RawMessage{json.RawMessage(c.Get("queue").Raw)}}).Check()
		require.Equal(t, c.Get("error").Exists(), err != nil, "%s: %v", c.Get("name"), err)
	}
}

// The sidecar's parsers accept the records and metrics of attempts that end.
func TestSidecarReadsOutcomes(t *testing.T) {
	for _, c := range vectors(t, "outcomes.json") {
		name := c.Get("name").String()
		if record := c.Get("record"); record.IsObject() {
			_, err := wire.ParseEntry(c.Get("stream").String(), 1, vectorRecord(t, record, c.Get("job").String()))
			require.NoError(t, err, name)
		}
		if metric := c.Get("metric"); metric.IsObject() {
			text, err := sjson.Set(metric.Raw, "timestamp", c.Get("now").Float())
			require.NoError(t, err)
			require.NoError(t, wire.CheckMetrics([]byte(text)), name)
		}
	}
}

// vectorRecord returns a record with its job. A number that may vary has its minimum.
func vectorRecord(t *testing.T, record gjson.Result, job string) []byte {
	t.Helper()
	text := []byte(record.Raw)
	var err error
	record.ForEach(func(name, value gjson.Result) bool {
		if value.IsObject() {
			text, err = sjson.SetRawBytes(text, name.Str, []byte(value.Get("min").Raw))
			require.NoError(t, err)
		}
		return true
	})
	text, err = sjson.SetRawBytes(text, "job", []byte(job))
	require.NoError(t, err)
	return text
}

func vectors(t *testing.T, file string) []gjson.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("vectors", file))
	require.NoError(t, err)
	cases := gjson.ParseBytes(text).Array()
	require.NotEmpty(t, cases)
	return cases
}
