package apiclient_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

func client(t *testing.T, status int, answer string) *apiclient.Client {
	t.Helper()
	return apiclient.New(apiclient.Address{Base: "http://" + clitest.NewAPI(t, status, answer).Addr()}, apiclient.Credentials{As: `user "ann"`}, nil)
}

func TestRefusalsHaveReason(t *testing.T) {
	for answer, want := range map[string]string{
		`{"error":"not_found","reason":"it is gone"}`: "it is gone",
		`{"error":"no_leader"}`:                       "no leader",
		`<html>`:                                      "the sidecar answered 409 Conflict",
		`{"error":"conflict","reason":"two","offsets":[3,9]}`: "two (--offset picks one: 3, 9)",
	} {
		_, err := client(t, http.StatusConflict, answer).Do(t.Context(), apiclient.Request{Path: "/x"})
		require.EqualError(t, err, want)
	}
	_, err := client(t, http.StatusUnauthorized, `{}`).Do(t.Context(), apiclient.Request{Path: "/x"})
	require.ErrorContains(t, err, `as user "ann": the sidecar answered 401 Unauthorized`)
}

func TestInvalidClientSettings(t *testing.T) {
	for base, want := range map[string]string{
		"http://jobs.example": "no password is sent to http://jobs.example without TLS",
		"http://::x::":        `invalid --http-addr "::x::"`,
	} {
		_, err := apiclient.New(apiclient.Address{Base: base}, apiclient.Credentials{Authorization: "Basic eA=="}, nil).Do(t.Context(), apiclient.Request{})
		require.ErrorContains(t, err, want)
		require.True(t, usage.Is(err))
	}
	_, err := apiclient.New(apiclient.Address{Base: "http://127.0.0.1:1"}, apiclient.Credentials{}, nil).Overview(t.Context())
	require.ErrorContains(t, err, "no sidecar answers at http://127.0.0.1:1")
}

func TestDecodeIgnoresUnknownMembers(t *testing.T) {
	type answer struct{ A, B string }
	got, err := apiclient.Decode[answer]([]byte(`{"a":7,"b":"x"}`))
	require.NoError(t, err)
	require.Equal(t, &answer{B: "x"}, got)
	_, err = apiclient.DecodeStrict[answer]([]byte(`{"a":7,"b":"x"}`))
	require.ErrorContains(t, err, "the sidecar's answer cannot be read")
	_, err = apiclient.Decode[answer]([]byte(`<html>`))
	require.ErrorContains(t, err, "the sidecar's answer cannot be read")
}

func TestFailedCheckIsAResult(t *testing.T) {
	h, err := client(t, http.StatusServiceUnavailable, `{"status":"failed","reason":"no leader"}`).Check(t.Context(), "leader")
	require.NoError(t, err)
	require.True(t, h.Failed())
	_, err = client(t, http.StatusServiceUnavailable, `{"reason":"the broker is not reached"}`).Check(t.Context(), "leader")
	require.EqualError(t, err, "check leader: the broker is not reached")
	h, err = client(t, http.StatusOK, `{"status":"ok"}`).Check(t.Context(), "leader")
	require.NoError(t, err)
	require.False(t, h.Failed())
}

func TestErrorsWithRemedies(t *testing.T) {
	o, err := client(t, http.StatusOK, `{"sets":{"retries":{"total":4}},"scheduler":{"gap":"g","orphaned":true,"blocked":"memory","lacks":"a stream",
		"degraded":[{"subject":"node x","problem":"p","costs":"c"}],"held":[{"queue":"mail","reason":"full"}]}}`).Overview(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, o.Sets[apiclient.Retries].Total)
	var subjects []string
	for _, trouble := range apiclient.Troubles(&o.Scheduler) {
		subjects = append(subjects, trouble.Subject)
	}
	require.Equal(t, []string{"journal", "leader", "leader", "streams", "node x", "queue mail"}, subjects)
}
