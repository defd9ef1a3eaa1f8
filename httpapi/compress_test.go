package httpapi_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

func TestAnswersAreCompressedOnRequest(t *testing.T) {
	w := newWorld(t)
	w.unchecked(func(*httpapi.Config) {})
	for _, jid := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		w.add(wire.Retries, retry(jid, 1_900_000_000, "default", "Mail", "Timeout"))
	}
	take := func(target, coding string) answer {
		r := request(http.MethodGet, target, "")
		r.Header.Set("Accept-Encoding", coding)
		return w.send(r)
	}
	for _, target := range []string{"/api/retries", "/api/retries?format=ndjson", "/api/retries?format=csv", "/api/openapi.yaml", "/api-docs/openapi.json"} {
		plain := take(target, "identity")
		require.Empty(t, plain.Header.Get("Content-Encoding"), target)
		require.Equal(t, plain.body, take(target, "gzip;q=0").body)
		packed := take(target, "br, gzip")
		require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"), target)
		require.Contains(t, packed.Header.Values("Vary"), "Accept-Encoding")
		require.Equal(t, plain.Header.Get("Content-Type"), packed.Header.Get("Content-Type"))
		require.Less(t, len(packed.body), len(plain.body)/2)
		z, err := gzip.NewReader(strings.NewReader(packed.body))
		require.NoError(t, err)
		text, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, plain.body, string(text))
	}
	require.Empty(t, take("/api/retries?limit=1", "gzip").Header.Get("Content-Encoding"), "not worth it")
	missing := take("/api/nothing", "gzip")
	require.Equal(t, http.StatusNotFound, missing.StatusCode)
	require.Empty(t, missing.Header.Get("Content-Encoding"))
	require.Equal(t, http.StatusMethodNotAllowed, w.do(http.MethodPut, "/api/retries", "{}").StatusCode)
}
