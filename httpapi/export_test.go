package httpapi_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestExportContainsWholeFilter(t *testing.T) {
	w := newWorld(t)
	for i := range 1203 {
		w.add(wire.Retries, retry(fmt.Sprintf("r%04d", i), float64(2_000_000_000+i), "q", []string{"A", "B", "C"}[i%3], "E"))
	}
	a := w.get("/api/retries?format=ndjson")
	require.Equal(t, "application/x-ndjson", a.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="retries.ndjson"`, a.Header.Get("Content-Disposition"))
	lines := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	require.Len(t, lines, 1203)
	require.True(t, strings.HasPrefix(lines[1202], retry("r1202", 2_000_001_202, "q", "C", "E")[:40]))

	a = w.get("/api/retries?format=csv&class=B&text=it+broke")
	require.Equal(t, "text/csv; charset=utf-8", a.Header.Get("Content-Type"))
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 402)
	require.Equal(t, []string{"jid", "queue", "class", "at", "attempt", "error_class", "error_message", "tags", "offset", "first_offset", "record"}, rows[0])
	require.Equal(t, []string{"r0001", "q", "B", "2033-05-18T03:33:21Z", "2", "E", "it broke", "", "1", "1", retry("r0001", 2_000_000_001, "q", "B", "E")}, rows[1])
	require.Equal(t, 1, strings.Count(w.get("/api/dead-jobs?format=csv").body, "\n"))
	require.Empty(t, w.get("/api/dead-jobs?format=ndjson").body)
}

// TestFailedExportIsCutOff makes sure that no client can mistake the beginning of an export for all
// of it, even while a compressor holds it back.
func TestFailedExportIsCutOff(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("r", 2_000_000_000, "q", "C", "E"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := request(http.MethodGet, "/api/retries?format=csv", "").WithContext(gone)
	r.Header.Set("Accept-Encoding", "gzip")
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { w.send(r) })
}

func TestExportEscapesFormulas(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("=cmd()", 2_000_000_000, "@q", "+C", "-E"))
	rows, err := csv.NewReader(strings.NewReader(w.get("/api/retries?format=csv").body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"'=cmd()", "'@q", "'+C"}, rows[1][:3])
	require.Equal(t, "'-E", rows[1][5])
}
