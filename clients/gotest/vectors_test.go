package gotest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/wire"
)

// TestSidecarReadsVectors reads the records and metrics that the vectors prescribe, as a sidecar reads those of a worker. The client's
// own tests compare what it writes with the vectors.
func TestSidecarReadsVectors(t *testing.T) {
	raw, err := os.ReadFile("../conformance/vectors/outcomes.json")
	require.NoError(t, err)
	cases := gjson.ParseBytes(raw).Array()
	require.NotEmpty(t, cases)
	for _, c := range cases {
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

// vectorRecord is the record around its job. Where a number may vary, it has the least.
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
