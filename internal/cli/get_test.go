package cli

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

// One answer that is valid for all requests prints what a healthy sidecar does not print.
func TestStatusShowsFaults(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"product_version":"v1","now":1000,"broker":{"product":"RabbitMQ","version":"4"},"vhost":"/","leader":{"identity":"a:1","epoch":3,"since":880},
		"scheduler":{"phase":"waiting","gap":"it is new","held":[{"queue":"mail","reason":"full"}]},"scheduled_overdue_seconds":90,
		"views":{"caught_up":false,"streams":[{"stream":"retries","caught_up":false},{"stream":"dead_jobs","caught_up":false,"fault":"gone"},{"stream":"job_journal","caught_up":true}]},
		"processes":{"running":2,"concurrency":20,"busy":3,"rss_kb":204800,"states":{"live":1,"quiet":1,"lost":4}},"rejected":{"retries":{"kept":1},"dead_jobs":{"kept":2}},
		"status":"failed","reason":"there is no leader","items":[{"kind":"no_consumer","severity":"critical","subject":"low","text":"12 jobs wait","value":12}]}`)
	r := millrace(t, "status", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{"GET /api/overview", "GET /api/health/checks/leader", "GET /api/attention"}, a.Asked())
	for _, line := range []string{
		`broker +RabbitMQ 4, virtual host /: not connected`,
		`leader +a:1, since .* \(2m00s ago\): there is no leader`,
		`views +not caught up with retries, dead_jobs \(gone\)`,
		`scheduled +0; the oldest due job is 1m30s late`,
		`rejected +3`,
		`processes +2 run, 3 of 20 busy, 200 MB, 1 quiet, 4 lost`,
		`journal +may have lost records.*it is new`,
		`queue mail +takes no jobs: full`,
		`millrace doctor says what to do`,
		`critical +no_consumer +low +12 jobs wait`,
	} {
		require.Regexp(t, line, r.out)
	}
	none := clitest.NewAPI(t, http.StatusOK, `{"leader":{"epoch":-1},"status":"ok"}`)
	require.Regexp(t, `leader +there was none yet\n`, millrace(t, "status", "--http-addr", none.Addr()).out)
}

func TestRequestsOfReadCommands(t *testing.T) {
	for line, want := range map[string]string{
		"errors --set retries --queue q --class C --from 1000000000": "GET /api/errors?class=C&from=2001-09-09T01%3A46%3A40Z&queue=q&set=retries",
		"due --set retries --to 1000000000 --step 30m":               "GET /api/due-times?set=retries&step=1800&to=2001-09-09T01%3A46%3A40Z",
		"job a/b":                                "GET /api/jobs/a%2Fb",
		"deploys --from 1000000000":              "GET /api/deploys?from=2001-09-09T01%3A46%3A40Z",
		"deploys mark v1":                        `POST /api/deploys application/json {"label":"v1"}`,
		"deploys mark v1 --at 1000000000.5":      `POST /api/deploys application/json {"at":1000000000.5,"label":"v1"}`,
		"jobs --status expired":                  "GET /api/jobs?limit=25&status=expired",
		"retries -o ndjson --error x":            "GET /api/retries?error=x&format=ndjson",
		"events --topics jobs,dead --for 1h":     "GET /api/events?topics=jobs%2Cdead",
		"events --topics jobs --topics overview": "GET /api/events?topics=jobs%2Coverview",
	} {
		a := clitest.NewAPI(t, http.StatusTeapot, "")
		require.Equal(t, ExitFailed, millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...).code, line)
		require.Equal(t, []string{want}, a.Asked())
	}
	for line, why := range map[string]string{
		"errors --from soon": "--from", "errors --set scheduled": "must be one of", "due --to soon": "--to", "due --set dead": "must be one of",
		"deploys --to soon": "--to", "deploys mark v1 --at soon": "--at", "events --for ever": "--for", "dead -o xml": "must be one of",
	} {
		r := millrace(t, strings.Fields(line)...)
		require.Equal(t, ExitUsage, r.code, line)
		require.Contains(t, r.err, why, line)
	}
}

func TestGetPrintsOneJob(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"jid":"a","entries":[{"error_message":7,"job":{"jid":"a"},"millrace":{"set":"dead-jobs","at":1,"queue":"low","class":"Mail","attempt":3}}],
		"leases":[{"id":"x","until":2,"queue":"q","class":"Mail","attempt":2}],"running":[{"identity":"h:1:x","class":"Mail","queue":"q","started_at":3,"stuck":true}],
		"events":[{"at":7,"what":"changed","set":"retries","actor":"ann","reason":"a typo","changes":[{"member":"args","was":"[1]","is":"[2]"}]},{"at":5,"what":"fired","set":"retries","offset":1}],
		"runs":[{"at":9,"jid":"a","queue":"q","status":"failed","duration_ms":1500,"attempt":2,"worker":"w:1:x","error_class":"Timeout"}],"older_than_kept":true}`)
	out := millrace(t, "job", "a", "--http-addr", a.Addr()).out
	require.Regexp(t, `dead-jobs .* ago +Mail +low +3 *\nrunning \(stuck\) .* ago +Mail +q +on h:1:x *\nleased .* ago +Mail +q +1 *\n\nWHEN .*\n.*failed +q +2 +1.5s +Timeout +w:1:x\n.*changed +retries +args: \[1\] -> \[2\]; a typo +ann\n.*fired +retries +\(millrace\)\nolder records are not kept\n`, out)
}

// The first line of a job that is not pending says what happened to it last.
func TestGetPrintsLastOutcome(t *testing.T) {
	const fired = `{"at":100,"what":"fired","set":"scheduled-jobs"}`
	for answer, says := range map[string]string{
		`{"events":[` + fired + `]}`: "sent to its queue",
		`{"events":[{"at":200,"what":"deleted","set":"retries"},` + fired + `]}`:                          "deleted",
		`{"events":[{"at":200,"what":"killed","set":"retries"},` + fired + `]}`:                           "moved to the dead jobs",
		`{"events":[{"at":200,"what":"trimmed","set":"dead-jobs"}]}`:                                      "trimmed",
		`{"events":[` + fired + `],"runs":[{"at":101,"status":"success"}]}`:                               "completed",
		`{"events":[` + fired + `],"runs":[{"at":99.5,"status":"success"}]}`:                              "completed",
		`{"events":[` + fired + `],"runs":[{"at":99.5,"status":"failed"}]}`:                               "sent to its queue",
		`{"events":[` + fired + `],"runs":[{"at":100,"status":"discarded"},{"at":50,"status":"failed"}]}`: "discarded",
		`{"events":[` + fired + `],"runs":[{"at":102,"status":"dead"},{"at":101,"status":"failed"}]}`:     "it failed for the last time",
		`{"runs":[{"at":2,"status":"success"},{"at":1,"status":"failed"}]}`:                               "completed",
	} {
		r := millrace(t, "job", "a", "--http-addr", clitest.NewAPI(t, http.StatusOK, answer).Addr())
		require.Zero(t, r.code, r.err)
		require.Regexp(t, `^in no list: `+says+`\n\nWHEN `, r.out, answer)
	}
}

func TestErrorGroupsMayBeIncomplete(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"items":[{"count":1}],"unsearched":2,"complete":false}`)
	require.Contains(t, millrace(t, "errors", "--http-addr", a.Addr()).out, "1 job in 1 group; 2 jobs too large to be searched; not all jobs could be read: try again, or filter by queue or class\n")
	a = clitest.NewAPI(t, http.StatusOK, `{"from":1000000000,"step":3600,"counts":[0,3],"before":1,"after":40,"complete":false}`)
	require.Regexp(t, `earlier +1\n\S+ \S+ +3\nlater +40\n44 in all; not all could be read: those count as later\n`, millrace(t, "due", "--http-addr", a.Addr()).out)
}

func TestWhoamiPrintsRole(t *testing.T) {
	for answer, may := range map[string]string{
		`{"may_act":true,"may_administer":true}`: " look, act, administer\n",
		`{"read_only":true}`:                     " look (this sidecar is read-only)\n",
		`{"hides_args":true}`:                    " look; some arguments are hidden\n",
	} {
		require.Contains(t, millrace(t, "whoami", "--http-addr", clitest.NewAPI(t, http.StatusOK, answer).Addr()).out, may)
	}
}

func TestHealthWithoutSidecar(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusServiceUnavailable, `{"error":"service_unavailable","reason":"the broker is not reached"}`)
	r := millrace(t, "health", "--http-addr", a.Addr())
	require.Equal(t, ExitFailed, r.code)
	require.Equal(t, "millrace: check alarms: the broker is not reached\n", r.err)
}

// A probe sends no password, reads none, and prints one line.
func TestProbes(t *testing.T) {
	for _, test := range []struct {
		command string
		status  int
		answer  string
		code    int
		prints  string
	}{
		{"ready", 200, `{"status":"ok"}`, 0, "ready\n"},
		{"ready", 200, `{"status":"ok","degraded":[{"subject":"queue a","costs":"b is late"},{"subject":"c","costs":"d"}]}`, 0, "ready, degraded: queue a (b is late), c (d)\n"},
		{"ready", 503, `{"status":"failed","reason":"the broker is not connected"}`, ExitFailed, "not ready: the broker is not connected\n"},
		{"ready", 200, `{}`, ExitFailed, "not ready: the answer has no status\n"},
		{"live", 200, `{"status":"ok"}`, 0, "live\n"},
	} {
		a := clitest.NewAPI(t, test.status, test.answer)
		r := millrace(t, "health", test.command, "--http-addr", a.Addr())
		require.Equal(t, result{test.code, test.prints, ""}, r)
		require.Equal(t, []string{map[string]string{"ready": "GET /readyz", "live": "GET /healthz"}[test.command]}, a.Asked())
	}

	t.Setenv("MILLRACE_AMQP_PASSWORD_FILE", "/nowhere")
	a := clitest.NewAPI(t, http.StatusOK, `{"status":"ok"}`)
	a.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	})
	_, port, err := net.SplitHostPort(a.Addr())
	require.NoError(t, err)
	for _, flags := range [][]string{{"--http-addr", "0.0.0.0:" + port}, {"--http-addr", ":" + port}, {"--api-url", "http://ann:secret@" + a.Addr() + "/"}} {
		r := millrace(t, append([]string{"health", "ready", "-o", "ndjson"}, flags...)...)
		require.Equal(t, result{0, `{"status":"ok"}` + "\n", ""}, r)
	}
	r := millrace(t, "health", "ready", "--http-addr", "127.0.0.1:1")
	require.Equal(t, ExitFailed, r.code)
	require.Contains(t, r.err, "no sidecar answers at http://127.0.0.1:1")
	require.Equal(t, ExitUsage, millrace(t, "health", "live", "--api-url", "ftp://x").code)
}
