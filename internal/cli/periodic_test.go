package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

const onePeriodic = `{"name":"nightly","state":"active","schedule":"every 1m0s","class":"Report","queue":"reports","definition":{},"layers":{},"next":[1795917600,1795917660],
	"last":{"tick":1795831200,"outcome":"made","jid":"j","at":1795831200.25},
	"ticks":[{"tick":1795831200,"outcome":"made","jid":"j","at":1795831200.25},{"tick":1795831140,"from":1795831020,"count":3,"outcome":"skipped","why":"missed","at":1795831190}]}`

func TestPeriodicJobsAreShown(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, "["+onePeriodic+"]")
	r := millrace(t, "periodic", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"NAME", "nightly", "every 1m0s", "reports", "made"} {
		require.Contains(t, r.out, want)
	}
	a = clitest.NewAPI(t, http.StatusOK, onePeriodic)
	r = millrace(t, "periodic", "ticks", "nightly", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"250ms", "skipped: missed", "3"} {
		require.Contains(t, r.out, want)
	}
	r = millrace(t, "periodic", "next", "nightly", "-n", "2", "--http-addr", a.Addr(), "-o", "json")
	require.JSONEq(t, `[1795917600,1795917660]`, r.out)
	r = millrace(t, "periodic", "ticks", "nightly", "--http-addr", a.Addr(), "-o", "json")
	require.Contains(t, r.out, `"why": "missed"`)
	require.Equal(t, []string{"GET /api/periodic-jobs/nightly?next=0", "GET /api/periodic-jobs/nightly?next=2", "GET /api/periodic-jobs/nightly?next=0"}, a.Asked())
}

func TestPeriodicJobsAreControlled(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"jid":"j","tick":1795917600}`)
	for _, args := range [][]string{{"run", "n"}, {"skip", "n"}, {"skip", "n", "--tick", "2026-11-29T02:00:00Z"}, {"pause", "n", "--reason", "r"}, {"resume", "n"}, {"delete", "n", "--yes", "--layer", "operator"}} {
		r := millrace(t, append(append([]string{"periodic"}, args...), "--http-addr", a.Addr())...)
		require.Zero(t, r.code, r.err)
	}
	require.Equal(t, []string{"POST /api/periodic-jobs/n/run", `POST /api/periodic-jobs/n/skip application/json {}`,
		`POST /api/periodic-jobs/n/skip application/json {"tick":1795917600}`, `PUT /api/periodic-jobs/n/pause application/json {"reason":"r"}`, "PUT /api/periodic-jobs/n/resume",
		"DELETE /api/periodic-jobs/n?layer=operator"}, a.Asked())
}

func TestDefine(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"made":["a"],"changed":[],"forgotten":["b"],"unchanged":2}`)
	file := filepath.Join(t.TempDir(), "periodic.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"source":"app","periodic_jobs":[{"name":"a","every":60,"job":{"class":"C"}}]}`), 0o600))
	r := millrace(t, "define", file, "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out+r.err, "1 made, 0 changed, 1 forgotten, 2 unchanged")
	r = millrace(t, "define", file, "--dry-run", "--http-addr", a.Addr(), "-o", "json")
	require.JSONEq(t, `{"done":"to be defined","made":["a"],"changed":[],"forgotten":["b"],"unchanged":2}`, r.out)
	sent := ` application/json {"source":"app","layer":"file","periodic_jobs":[{"name":"a","every":60,"job":{"class":"C"}}]}`
	require.Equal(t, []string{"POST /api/definitions" + sent, "POST /api/definitions?dry_run=true" + sent}, a.Asked())
	limits := `{"source":"app","layer":"code","limits":[{"name":"each","concurrency":3}]}`
	require.NoError(t, os.WriteFile(file, []byte(limits), 0o600))
	require.Zero(t, millrace(t, "define", file, "--http-addr", a.Addr()).code, "a document may have limits alone")
	require.Equal(t, "POST /api/definitions application/json "+limits, a.Asked()[2])
	for _, bad := range []string{`{"source":"app"}`, `{"sources":1}`, `[`, `{"source":"app","periodic_jobs":[]}{"source":"other","periodic_jobs":[]}`} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		require.Equal(t, 2, millrace(t, "define", file, "--http-addr", a.Addr()).code, bad)
	}
	require.Equal(t, 2, millrace(t, "define", file+".none", "--http-addr", a.Addr()).code)
}
