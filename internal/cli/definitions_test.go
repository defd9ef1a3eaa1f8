package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi/answer"
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

func TestDefinitionsAreExported(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, twoQueues)
	a.On("/api/periodic-jobs", "[]")
	r := millrace(t, "definitions", "export", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, exportedQueues, r.out)
	require.Equal(t, []string{"GET /api/health/checks/views-caught-up", "GET /api/job-queues?page=1&page_size=500", "GET /api/periodic-jobs"}, a.Asked())
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

func TestOperatorsLayersAreExportedAndImported(t *testing.T) {
	var jobs []answer.PeriodicJob
	require.NoError(t, json.Unmarshal([]byte(operatorsJobs), &jobs))
	layers, err := operatorsLayers(jobs)
	require.NoError(t, err)
	require.Len(t, layers, 1)
	require.Equal(t, `{"job":{"args":[9007199254740993]},"name":"nightly","paused":true}`, string(layers[0]))
	jobs[0].Layers["operator"] = answer.PeriodicLayer{Value: json.RawMessage(`{"job":{"args":["[hidden]"]}}`)}
	_, err = operatorsLayers(jobs)
	require.ErrorContains(t, err, `periodic job "nightly" has values that this user may not see`)

	file := filepath.Join(t.TempDir(), "definitions.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"queues":[],"periodic_jobs":[`+string(layers[0])+`,{"name":"poll","paused":true},{"name":"new","every":60,"job":{"class":"C"}}]}`), 0o600))
	a := clitest.NewAPI(t, http.StatusOK, operatorsJobs)
	a.On("/api/job-queues", `{"total":0,"page":1,"page_size":500,"page_count":1,"items":[]}`)
	r := millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--dry-run", "-o", "json")
	require.Zero(t, r.code, r.err)
	require.JSONEq(t, `[{"periodic":"nightly","done":"unchanged"},{"periodic":"poll","done":"to be set"},{"periodic":"new","done":"to be made"}]`, r.out)
	r = millrace(t, "definitions", "import", file, "--http-addr", a.Addr(), "--reason", "moved")
	require.Zero(t, r.code, r.err)
	require.Regexp(t, `(?m)^periodic job +poll +set$`, r.out)
	asked := a.Asked()
	require.Equal(t, []string{`PUT /api/periodic-jobs/poll application/json {"paused":true}`, `PUT /api/periodic-jobs/new application/json {"every":60,"job":{"class":"C"}}`}, asked[len(asked)-2:])
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
	} {
		file := filepath.Join(t.TempDir(), "definitions.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		r := millrace(t, "definitions", "import", file, "--http-addr", "127.0.0.1:1")
		require.Equal(t, ExitUsage, r.code)
		require.Contains(t, r.err, want)
	}
	require.Contains(t, millrace(t, "definitions", "import", strings.Repeat("x", 9)).err, "no such file")
}
