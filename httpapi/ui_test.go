package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/ui"
)

func TestUIIsServedWithoutSignIn(t *testing.T) {
	w := newSecured(t)
	w.unchecked(func(*httpapi.Config) {})
	a := w.get("/retries")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Equal(t, ui.Policy, a.Header.Get("Content-Security-Policy"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
	require.Equal(t, "/dashboard", w.get("/").Header.Get("Location"))

	r := request(http.MethodGet, "/retries", "")
	r.Host = "evil.example"
	w.send(r).problem(t, http.StatusForbidden, "access_refused")
}

func TestUIServesContractAsJSON(t *testing.T) {
	w := newSecured(t)
	w.unchecked(func(*httpapi.Config) {})
	var contract struct {
		Paths map[string]map[string]any
	}
	a := w.get("/api-docs/openapi.json")
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal([]byte(a.body), &contract))
	require.Contains(t, contract.Paths["/api/retries/{jid}"], "patch")
}
