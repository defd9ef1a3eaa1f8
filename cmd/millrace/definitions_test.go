package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// A file of a deploy, and an export of what operators have set, make a new installation like the
// old one.
func TestDefinitionsMoveToAnotherBroker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deployed, exported := filepath.Join(dir, "deployed.json"), filepath.Join(dir, "exported.json")
	require.NoError(t, os.WriteFile(deployed, []byte(`{"source":"billing",
		"queues":[{"name":"imports","key":"args.0.customer_id","max_waiting":1000}],
		"limits":[{"name":"imports-each","queues":["imports"],"per":["key"],"concurrency":3}],
		"periodic_jobs":[{"name":"nightly","cron":"0 3 * * *","job":{"class":"Report"}}]}`), 0o600))
	installation := func() (run func(args ...string) string) {
		s := start(t, beside(brokertest.New(t)))
		s.leads(t)
		s.ready(t)
		run = func(args ...string) string {
			r := millrace(t, append(args, s.flags...)...)
			require.Zero(t, r.code, "%v: %s", args, r.err)
			return r.out
		}
		run("define", deployed)
		return run
	}
	before, after := installation(), installation()
	before("limits", "pause", "imports-each")
	before("governed", "set", "imports", "--weights", "big=3", "--max-waiting", "5")
	before("governed", "set", "mails", "--key", "args.0")
	before("governed", "pause", "mails")
	before("periodic", "pause", "nightly")
	text := before("definitions", "export")
	require.NoError(t, os.WriteFile(exported, []byte(text), 0o600))

	require.NotEqual(t, text, after("definitions", "export"))
	after("definitions", "import", exported)
	require.Equal(t, text, after("definitions", "export"))
	require.NotRegexp(t, `(?m) (made|set|paused)$`, after("definitions", "import", exported), "all is there")
	for _, what := range [][]string{{"limits", "show", "imports-each"}, {"governed", "show", "imports"}, {"governed", "show", "mails"}, {"periodic", "show", "nightly"}} {
		definition := func(run func(...string) string) string {
			return gjson.Get(run(append(what, "-o", "json")...), "definition").Raw
		}
		require.NotEmpty(t, definition(before))
		require.Equal(t, definition(before), definition(after))
	}
}
