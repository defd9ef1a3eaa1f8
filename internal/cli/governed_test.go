package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestGovernedQueuesAreShown(t *testing.T) {
	const one = `{"name":"imports","state":"draining","since":1795831200,"definition":{"ahead":3},"layers":{},"waiting":9,"out":4}`
	a := clitest.NewAPI(t, http.StatusOK, "["+one+"]")
	r := millrace(t, "governed", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"QUEUE", "imports", "draining", "9", "4"} {
		require.Contains(t, r.out, want)
	}
	a = clitest.NewAPI(t, http.StatusOK, one)
	r = millrace(t, "governed", "show", "imports", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "draining")
	require.Equal(t, []string{"GET /api/governed-queues/imports"}, a.Asked())
}

func TestQueuesAreGoverned(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusNoContent, "")
	for _, args := range [][]string{
		{"set", "imports", "--key", "args.0", "--max-waiting", "9", "--ahead", "3", "--weights", "a=2", "--weights", "b=3"},
		{"set", "imports"}, {"pause", "imports", "--reason", "r"}, {"resume", "imports"}, {"forget", "imports", "--yes", "--layer", "operator"},
	} {
		r := millrace(t, append(append([]string{"governed"}, args...), "--http-addr", a.Addr())...)
		require.Zero(t, r.code, r.err)
	}
	require.Equal(t, []string{`PUT /api/governed-queues/imports application/json {"key":"args.0","max_waiting":9,"weights":{"a":2,"b":3},"ahead":3}`,
		"PUT /api/governed-queues/imports application/json {}", `PUT /api/governed-queues/imports/pause application/json {"reason":"r"}`,
		"PUT /api/governed-queues/imports/resume", "DELETE /api/governed-queues/imports?layer=operator"}, a.Asked())

	r := millrace(t, "governed", "set", "imports", "--key", "a..b", "--http-addr", a.Addr())
	require.NotZero(t, r.code)
	require.Contains(t, r.err, "args.0.customer")
}

// A dry run prints what governing the queue would mean.
func TestGoverningIsPreviewed(t *testing.T) {
	const preview = `{"name":"imports","definition":{"max_waiting":9},"limits":["imports-each","all"],"ready":120,"gated":31,"scheduled":3,"retries":2,"full":true}`
	a := clitest.NewAPI(t, http.StatusOK, preview)
	args := []string{"governed", "set", "imports", "--max-waiting", "9", "--dry-run", "--http-addr", a.Addr()}
	r := millrace(t, args...)
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"imports-each", "120", "31", "full"} {
		require.Contains(t, r.out, want)
	}
	require.NotContains(t, r.out, "unacked", "it is not known")
	require.Equal(t, []string{`PUT /api/governed-queues/imports?dry_run=true application/json {"max_waiting":9}`}, a.Asked())
	r = millrace(t, append(args, "-o", "json")...)
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, preview, r.out)
}
