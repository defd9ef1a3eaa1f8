package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/wire"
)

const twoQueues = `{"total":2,"page":1,"page_size":500,"page_count":1,"items":[{"name":"low","paused":{"at":1795158930,"actor":"ann","reason":"<down>"}},{"name":"mails"}]}`

const exportedQueues = `{
  "queues": [
    {
      "name": "low",
      "paused": {
        "at": 1795158930,
        "actor": "ann",
        "reason": "<down>"
      }
    },
    {
      "name": "mails"
    }
  ]
}
`

// nothingLayered has the API answer that nothing is defined in layers.
func nothingLayered(a *clitest.API) {
	for _, k := range layeredKinds {
		a.On(k.path, "[]")
	}
}

func TestDefinitionsAreExported(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, twoQueues)
	nothingLayered(a)
	r := millrace(t, "definitions", "export", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, exportedQueues, r.out)
	require.Equal(t, []string{"GET /api/health/checks/views-caught-up", "GET /api/job-queues?page=1&page_size=500", "GET /api/limits", "GET /api/governed-queues", "GET /api/periodic-jobs"}, a.Asked())
}

// A queue whose type is changed is paused meanwhile. Only a pause that an operator has set counts.
func TestPausesOfMovesAreNotExported(t *testing.T) {
	require.Nil(t, byOperator(nil))
	require.Nil(t, byOperator(&wire.Pause{At: 1, Move: &wire.PauseMove{To: "quorum"}}))
	require.Equal(t, &wire.Pause{At: 1, Reason: "off"}, byOperator(&wire.Pause{At: 1, Reason: "off", Move: &wire.PauseMove{To: "quorum", Paused: true}}))
}

// A queue that exists is left alone, but for the pause that the file has.
func TestDefinitionsAreImported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "definitions.json")
	text := `{"queues":[{"name":"mails","paused":{"at":1,"reason":"off"}},{"name":"low","paused":{"at":1}},{"name":"new"},{"name":"a/b","paused":{"at":1}}]}`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	a := clitest.NewAPI(t, http.StatusOK, twoQueues)
	r := millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--dry-run", "-o", "json")
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, `[{"queue":"mails","done":"to be paused"},{"queue":"low","done":"unchanged"},{"queue":"new","done":"to be made"},{"queue":"a/b","done":"to be made and paused"}]`, r.out)
	require.Len(t, a.Asked(), 1)
	r = millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--reason", "moved")
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{
		`PUT /api/job-queues/mails/pause application/json {"reason":"moved"}`, `PUT /api/job-queues/new application/json {"reason":"moved"}`,
		`PUT /api/job-queues/a%2Fb application/json {"reason":"moved"}`, `PUT /api/job-queues/a%2Fb/pause application/json {"reason":"moved"}`,
	}, a.Asked()[2:])
	require.Regexp(t, `(?m)^queue +a/b +made and paused$`, r.out)
}

const operatorsJobs = `[{"name":"nightly","layers":{"code":{"value":{"every":60,"job":{"class":"C"}}},"operator":{"value":{"job":{"args":[9007199254740993]},"paused":true}}}},
	{"name":"poll","layers":{"code":{"value":{"every":60}}}}]`

// What operators have set is exported, and what code and files define is not. An import sets what
// differs.
func TestOperatorsLayersAreExportedAndImported(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, twoQueues)
	nothingLayered(a)
	a.On("/api/limits", `[{"name":"each","layers":{"code":{"value":{"concurrency":1}},"operator":{"value":{"concurrency":3}}}},{"name":"coded","layers":{"code":{"value":{"concurrency":1}}}}]`)
	a.On("/api/governed-queues", `[{"name":"mails","layers":{"operator":{"value":{"key":"args.0","weights":{"big":3}}}}},{"name":"filed","layers":{"file":{"value":{}}}}]`)
	a.On("/api/periodic-jobs", operatorsJobs)
	r := millrace(t, "definitions", "export", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	var all definitions
	require.NoError(t, json.Unmarshal([]byte(r.out), &all))
	require.Len(t, all.Limits, 1)
	require.JSONEq(t, `{"name":"each","concurrency":3}`, string(all.Limits[0]))
	require.Len(t, all.Governed, 1)
	require.JSONEq(t, `{"name":"mails","key":"args.0","weights":{"big":3}}`, string(all.Governed[0]))
	require.Len(t, all.PeriodicJobs, 1)
	require.Contains(t, string(all.PeriodicJobs[0]), "9007199254740993", "numbers are kept as they are")

	file := filepath.Join(t.TempDir(), "definitions.json")
	require.NoError(t, os.WriteFile(file, []byte(r.out), 0o600))
	r = millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "-o", "json")
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, `[{"queue":"low","done":"unchanged"},{"queue":"mails","done":"unchanged"},{"limit":"each","done":"unchanged"},{"governed_queue":"mails","done":"unchanged"},{"periodic_job":"nightly","done":"unchanged"}]`, r.out)

	a.On("/api/periodic-jobs", `[{"name":"nightly","layers":{"operator":{"value":{"job":{"args":["[hidden]"]}}}}}]`)
	require.Contains(t, millrace(t, "definitions", "export", "--http-addr", a.Addr()).err, `periodic job "nightly" has values that this user may not see`)
}

func TestOperatorsLayersThatDifferAreSet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "definitions.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":[],"periodic_jobs":[{"name":"poll","paused":true},{"name":"new","every":60,"job":{"class":"C"}}],
		"limits":[{"name":"each","concurrency":3}],"governed_queues":[{"name":"a/b","max_waiting":9}]}`), 0o600))
	a := clitest.NewAPI(t, http.StatusOK, operatorsJobs)
	nothingLayered(a)
	a.On("/api/periodic-jobs", operatorsJobs)
	a.On("/api/job-queues", `{"total":0,"page":1,"page_size":500,"page_count":1,"items":[]}`)
	r := millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--dry-run", "-o", "json")
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, `[{"limit":"each","done":"to be made"},{"governed_queue":"a/b","done":"to be made"},{"periodic_job":"poll","done":"to be set"},{"periodic_job":"new","done":"to be made"}]`, r.out)
	before := len(a.Asked())
	r = millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--reason", "moved")
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `(?m)^periodic job +poll +set$`, r.out)
	require.Regexp(t, `(?m)^governed queue +a/b +made$`, r.out)
	var put []string
	for _, asked := range a.Asked()[before:] {
		if strings.HasPrefix(asked, "PUT ") {
			put = append(put, asked)
		}
	}
	require.Equal(t, []string{
		`PUT /api/limits/each application/json {"concurrency":3}`, `PUT /api/governed-queues/a%2Fb application/json {"max_waiting":9}`,
		`PUT /api/periodic-jobs/poll application/json {"paused":true}`, `PUT /api/periodic-jobs/new application/json {"every":60,"job":{"class":"C"}}`,
	}, put)
}

func TestInvalidDefinitions(t *testing.T) {
	for text, want := range map[string]string{
		`{"queue":[]}`:                           `unknown field "queue"`,
		`[]`:                                     "was not written by millrace definitions export",
		`{}`:                                     "it has no queues",
		`{"queues":[]}{"queues":[]}`:             "something follows the document",
		`{"queues":[{"name":"a"},{"name":"a"}]}`: `queue "a": it is listed twice`,
		`{"queues":[{"name":"a\n"}]}`:            `queue "a\n"`,
		`{"queues":[],"periodic_jobs":[{"every":60}]}`:           "has no name",
		`{"queues":[],"periodic_jobs":[{"name":"a","evry":60}]}`: `unknown field "evry"`,
		`{"queues":[],"limits":[{"name":"a","concurency":6}]}`:   `unknown field "concurency"`,
		`{"queues":[],"governed_queues":[{"key":"args.0"}]}`:     "has no name",
	} {
		file := filepath.Join(t.TempDir(), "definitions.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := millrace(t, "definitions", "import", file, "--http-addr", "127.0.0.1:1")
		require.Equal(t, ExitUsage, r.code)
		require.Contains(t, r.err, want)
	}
	require.Contains(t, millrace(t, "definitions", "import", strings.Repeat("x", 9)).err, "no such file")
}
