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

func TestJournalIsExportedAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	for i := range 1203 {
		w.journal(wire.JournalRecord{Type: wire.TypeDeleted, At: 1_700_000_000.1 + float64(i), Stream: wire.Retries, Offset: int64(i),
			JID: fmt.Sprint("j", i), Actor: []string{"ann", "=bob"}[i%2], Reason: "old"})
	}
	a := w.get("/api/journal?format=ndjson")
	require.Equal(t, "application/x-ndjson", a.Header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="journal.ndjson"`, a.Header.Get("Content-Disposition"))
	lines := strings.Split(strings.TrimSuffix(a.body, "\n"), "\n")
	require.Len(t, lines, 1203)
	require.JSONEq(t, `{"record":1203,"at":1700001202.1,"op":"deleted","set":"retries","offset":1202,"jid":"j1202","actor":"ann","reason":"old"}`, lines[0])
	require.Contains(t, lines[1202], `"record":1,`)

	a = w.get("/api/journal?format=csv&actor=%3Dbob")
	require.Equal(t, "text/csv; charset=utf-8", a.Header.Get("Content-Type"))
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+601)
	require.Equal(t, []string{"record", "at", "op", "set"}, rows[0][:4])
	require.Equal(t, []string{"2", "2023-11-14T22:13:21.1Z", "deleted", "retries", "", "1", "j1", "", "", "", "'=bob", "old", "", "", "", ""}, rows[601])
}

// An operation is one row of a file, even if its acts are on several pages of the journal.
func TestExportedJournalHasOneRowAnOperation(t *testing.T) {
	w := newWorld(t)
	w.began("op", "ann")
	w.did("op", "ann", 400)
	for i := range 600 {
		w.paused(fmt.Sprint("q", i), "bob")
	}
	w.ended("op")
	rows, err := csv.NewReader(strings.NewReader(w.get("/api/journal?format=csv&collapse=operations").body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+600+1)
	require.Equal(t, []string{"op", "delete", "done", "400"}, rows[1][12:], "the newest act of the operation, and its jobs")
}

func TestExportOfJournalTakesNoPages(t *testing.T) {
	w := newWorld(t)
	for _, query := range []string{"format=xml", "format=csv&limit=5", "format=csv&next=3", "format="} {
		w.get("/api/journal?"+query).problem(t, http.StatusBadRequest, "bad_request")
	}
	require.Equal(t, 1, strings.Count(w.get("/api/journal?format=csv").body, "\n"))
	require.Empty(t, w.do(http.MethodHead, "/api/journal?format=ndjson", "").body)
}

func TestExportEscapesFormulas(t *testing.T) {
	w := newWorld(t)
	w.add(wire.Retries, retry("=cmd()", 2_000_000_000, "@q", "+C", "-E"))
	rows, err := csv.NewReader(strings.NewReader(w.get("/api/retries?format=csv").body)).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"'=cmd()", "'@q", "'+C"}, rows[1][:3])
	require.Equal(t, "'-E", rows[1][5])
}
