package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestOperationExpectsShownCount(t *testing.T) {
	begin := func(t *testing.T, answer, line string) (*clitest.API, result) {
		a := clitest.NewAPI(t, http.StatusOK, answer)
		return a, millrace(t, append(strings.Fields("operations begin "+line), "--http-addr", a.Addr())...)
	}
	exact := `{"total_count":70,"filtered_count":60,"as_of":9,"next":null,"id":"op1"}`
	a, r := begin(t, exact, "retry dead-jobs --queue low --dry-run")
	require.Equal(t, "60 dead jobs match\n", r.out)
	require.Equal(t, []string{"GET /api/dead-jobs?page=1&page_size=1&queue=low"}, a.Asked(), "nothing is done")
	a, r = begin(t, exact, "retry dead-jobs --queue low")
	require.Equal(t, ExitUsage, r.code)
	require.Equal(t, "millrace: Retry 60 dead jobs? There is no terminal to ask on: add --yes to do it\n", r.err)
	require.Equal(t, []string{"GET /api/dead-jobs?page=1&page_size=1&queue=low"}, a.Asked(), "nothing is done")

	a, r = begin(t, exact, "retry dead-jobs --queue low --over 10m --reason up --yes")
	require.Equal(t, "operation op1 begun on 60 dead jobs; follow it with millrace operations show op1\n", r.out)
	require.Equal(t, `POST /api/operations application/json {"action":"retry","as_of":9,"expected_count":60,"filter":{"queue":"low"},"rate":0.1,"reason":"up","set":"dead-jobs"}`, a.Asked()[1])

	a, _ = begin(t, exact, "change scheduled-jobs --at 2000000000 --from 1000000000 --rate 5 --yes")
	require.Equal(t, `POST /api/operations application/json {"action":"change","as_of":9,"at":2000000000,"expected_count":60,"filter":{"from":1000000000},"rate":5,"set":"scheduled-jobs"}`, a.Asked()[1])

	// An inexact count cannot be expected.
	some := `{"total_count":70,"filtered_count_at_least":5,"as_of":9,"next":"x","id":"op1"}`
	a, r = begin(t, some, "delete retries --error Timeout --yes")
	require.Contains(t, r.out, "at least 5 retries")
	require.Equal(t, `POST /api/operations application/json {"action":"delete","as_of":9,"filter":{"error":"Timeout"},"set":"retries"}`, a.Asked()[1])
	_, r = begin(t, some, "delete retries --error Timeout --over 10m --yes")
	require.Contains(t, r.err, "set --rate")

	a, _ = begin(t, exact, "retry dead-jobs --args 0.customer:42 --yes")
	require.Equal(t, []string{"GET /api/dead-jobs?args=0.customer%3A42&page=1&page_size=1",
		`POST /api/operations application/json {"action":"retry","as_of":9,"expected_count":60,"filter":{"args":"0.customer:42"},"set":"dead-jobs"}`}, a.Asked())

	for line, why := range map[string]string{
		"retry retries --args 0..a:1 --yes":       "--args",
		"retry retries --from soon":               "--from",
		"retry retries --over 1x --yes":           "--over",
		"retry retries --over 10m --rate 1 --yes": "mutually exclusive",
		"change retries --at soon --yes":          "--at",
		"dance retries":                           "must be one of",
	} {
		_, r := begin(t, exact, line)
		require.Equal(t, ExitUsage, r.code, line)
		require.Contains(t, r.err, why, line)
	}
}

func TestOperationsAreUndone(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"id":"op2","action":"undo","undoes":"op1"}`)
	r := millrace(t, "operations", "undo", "op1", "--reason", "wrong ones", "--rate", "5", "--http-addr", a.Addr())
	require.Equal(t, "operation op2 undoes operation op1; follow it with millrace operations show op2\n", r.out)
	require.Equal(t, []string{`POST /api/operations/op1/undo application/json {"rate":5,"reason":"wrong ones"}`}, a.Asked())
	require.Contains(t, millrace(t, "operations", "undo", "op1", "--http-addr", clitest.NewAPI(t, http.StatusOK, "x").Addr()).err, "cannot be read")
}

func TestOperationsAreListed(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `[{"id":"op1","action":"retry","set":"dead-jobs","state":"running","started_at":1,"done":3,"failed":1,"total":9,"actor":"ann","reason":"it is up"}]`)
	r := millrace(t, "operations", "--http-addr", a.Addr())
	require.Contains(t, r.out, "op1")
	require.Contains(t, r.out, "3/9")
	require.Contains(t, millrace(t, "operations", "-o", "json", "--http-addr", a.Addr()).out, `"id": "op1"`)
	require.Contains(t, millrace(t, "operations", "show", "op1", "-o", "json", "--http-addr", a.Addr()).out, `"state": "running"`)
	require.Contains(t, millrace(t, "operations", "--http-addr", clitest.NewAPI(t, http.StatusOK, "x").Addr()).err, "cannot be read")
}

func TestInvalidChanges(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, "")
	for line, why := range map[string]string{"scheduled change a": "nothing to change", "scheduled change a --at soon": "--at", "scheduled change a --args [": "--args"} {
		r := millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...)
		require.Equal(t, ExitUsage, r.code, line)
		require.Contains(t, r.err, why, line)
	}
	require.Empty(t, a.Asked())
}
