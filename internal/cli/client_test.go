package cli

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestRequestsOfCommands(t *testing.T) {
	for line, want := range map[string]string{
		"scheduled trigger a":                       "POST /api/scheduled-jobs/a/trigger",
		"scheduled kill a --reason why --yes":       `POST /api/scheduled-jobs/a/kill application/json {"reason":"why"}`,
		"scheduled delete a --offset 5 --yes":       "DELETE /api/scheduled-jobs/a?offset=5",
		"retries retry a/b":                         "POST /api/retries/a%2Fb/retry",
		"retries kill .. -y":                        "POST /api/retries/%2E%2E/kill",
		"retries delete % -y":                       "DELETE /api/retries/%25",
		"dead retry é":                              "POST /api/dead-jobs/%C3%A9/retry",
		"dead rm a --offset 0 -y":                   "DELETE /api/dead-jobs/a?offset=0",
		"processes quiet h:1:a/b":                   "PUT /api/processes/h:1:a%2Fb/quiet",
		"scheduled change a --at 2000000000":        `PATCH /api/scheduled-jobs/a application/json {"at":2000000000}`,
		"dead change a --queue low --priority 0":    `PATCH /api/dead-jobs/a application/json {"priority":0,"queue":"low"}`,
		"retries change a --args [1,\"x\"]":         `PATCH /api/retries/a application/json {"args":[1,"x"]}`,
		"dead undo a --offset 3":                    "POST /api/dead-jobs/a/undo?offset=3",
		"gated kill a --reason why -y":              `POST /api/gated-jobs/a/kill application/json {"reason":"why"}`,
		"gated change a --queue low":                `PATCH /api/gated-jobs/a application/json {"queue":"low"}`,
		"operations cancel x/y --reason why":        `DELETE /api/operations/x%2Fy application/json {"reason":"why"}`,
		"queues pause a/b":                          `PUT /api/job-queues/a%2Fb/pause application/json {}`,
		"queues resume a --reason up":               `PUT /api/job-queues/a/resume application/json {"reason":"up"}`,
		"queues make a --reason new":                `PUT /api/job-queues/a application/json {"reason":"new"}`,
		"rejected delete retries 7 --reason why -y": `DELETE /api/rejected/retries/7 application/json {"reason":"why"}`,
		"job cancel a/b --reason why -y":            `POST /api/jobs/a%2Fb/cancel application/json {"reason":"why"}`,
		"job delete a/b --reason why -y":            `DELETE /api/jobs/a%2Fb application/json {"reason":"why"}`,
		"job delete a -y":                           "DELETE /api/jobs/a",
	} {
		t.Run(line, func(t *testing.T) {
			a := clitest.NewAPI(t, http.StatusNoContent, "")
			r := millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...)
			require.Zero(t, r.code, r.err)
			require.Equal(t, []string{want}, a.Asked())
			require.Regexp(t, `^[a-z].+\n$`, r.out)
		})
	}
}

func TestActionsPrintJSON(t *testing.T) {
	for line, want := range map[string]string{
		"retries retry a":              `{"done":"sent to its queue","jid":"a","set":"retries"}`,
		"dead change a --queue low":    `{"done":"changed","jid":"a","set":"dead-jobs"}`,
		"job delete a -y":              `{"done":"deleted","jid":"a"}`,
		"queues pause mails":           `{"done":"paused","queue":"mails"}`,
		"processes quiet h:1:x":        `{"asked":"quiet","process":"h:1:x"}`,
		"rejected delete retries 7 -y": `{"done":"removed from the list","offset":7,"stream":"retries"}`,
		"operations cancel op1":        `{"done":"cancelled","id":"op1"}`,
	} {
		a := clitest.NewAPI(t, http.StatusNoContent, "")
		did := func(form string) string {
			r := millrace(t, append(strings.Fields(line), "-o", form, "--http-addr", a.Addr())...)
			require.Zero(t, r.code, r.err)
			return r.out
		}
		require.JSONEq(t, want, did("json"), line)
		require.Equal(t, want+"\n", did("ndjson"), line)
	}
}

func TestRequestsOfLists(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"total_count":0,"items":[]}`)
	r := millrace(t, "retries", "--queue", "low", "--class", "Mail", "--error", "Timeout", "--tag", "x", "--text", "a b", "--from", "2026-12-24T18:00:00Z",
		"--to", "2026-12-25T18:00:00Z", "--limit", "10", "--page", "2", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{"GET /api/retries?class=Mail&error=Timeout&from=2026-12-24T18%3A00%3A00Z&page=2&page_size=10&queue=low&tag=x&text=a+b&to=2026-12-25T18%3A00%3A00Z"}, a.Asked())
	require.Equal(t, "none\n", r.out)

	require.Zero(t, millrace(t, "retries", "--jid", "a", "--next", "5,7", "--http-addr", a.Addr()).code)
	require.Equal(t, "GET /api/retries?jid=a&next=5%2C7&page=1&page_size=25", a.Asked()[1])
	require.Zero(t, millrace(t, "dead", "--args", `0.a\.b:42 + 1`, "--http-addr", a.Addr()).code)
	require.Equal(t, "GET /api/dead-jobs?args=0.a%5C.b%3A42+%2B+1&page=1&page_size=25", a.Asked()[2])

	r = millrace(t, "retries", "--from", "soon", "--http-addr", a.Addr())
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, `--from: invalid time "soon"`)
	r = millrace(t, "retries", "--args", "0.customer", "--http-addr", a.Addr())
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, `--args: "0.customer" has no colon between path and value: write a path, a colon and a value, such as 0.customer:42`)
	require.Len(t, a.Asked(), 3, "nothing is asked")
}

func TestJSONKeepsEveryDigit(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"args":[9007199254740993,1e400]}`)
	for _, line := range []string{"dead", "dead show a", "processes", "processes show a", "rejected", "rejected show retries 1", "status", "attention",
		"health leader", "errors", "due", "job a", "deploys", "whoami", "queues", "queues show a", "queues peek a", "operations", "operations show a",
		"jobs", "journal", "metrics", "scheduled", "retries", "gated"} {
		for form, want := range map[string]string{
			"json":   "{\n  \"args\": [\n    9007199254740993,\n    1e400\n  ]\n}\n",
			"yaml":   "args:\n  - 9007199254740993\n  - 1e400\n",
			"ndjson": `{"args":[9007199254740993,1e400]}` + "\n",
		} {
			if form == "ndjson" && slices.Contains([]string{"dead", "scheduled", "retries", "gated"}, line) {
				continue // the sidecar writes these
			}
			r := millrace(t, append(strings.Fields(line), "-o", form, "--http-addr", a.Addr())...)
			require.Zero(t, r.code, r.err)
			require.Equal(t, want, r.out, line)
		}
	}
}

func TestRefusalsArePrinted(t *testing.T) {
	for name, test := range map[string]struct {
		status       int
		answer, says string
	}{
		"gone":      {404, `{"error":"not_found","reason":"no entry of retries has this jid now: the one at offset 3 was deleted","request_id":"x"}`, "retry a: no entry of retries has this jid now: the one at offset 3 was deleted\n"},
		"several":   {409, `{"error":"conflict","reason":"2 entries have this jid","offsets":[3,9]}`, "retry a: 2 entries have this jid (--offset picks one: 3, 9)\n"},
		"no leader": {503, `{"error":"no_leader"}`, "retry a: no leader\n"},
		"no JSON":   {502, `<html>`, "retry a: the sidecar answered 502 Bad Gateway\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := clitest.NewAPI(t, test.status, test.answer)
			for _, verb := range []string{"retry", "show"} {
				r := millrace(t, "retries", verb, "a", "--http-addr", a.Addr())
				require.Equal(t, ExitFailed, r.code)
				require.Equal(t, "millrace: "+test.says, r.err)
			}
			r := millrace(t, "retries", "--http-addr", a.Addr())
			require.Equal(t, ExitFailed, r.code)
			for _, args := range [][]string{{"rejected", "list"}, {"rejected", "show", "retries", "1"}, {"rejected", "delete", "retries", "1", "-y"}, {"status"}, {"health"}, {"job", "a"},
				{"job", "delete", "a", "-y"}, {"deploys", "mark", "v1"}, {"release", "-y"}, {"events"}, {"dead", "-o", "csv"}} {
				r := millrace(t, append(args, "--http-addr", a.Addr())...)
				require.Equal(t, ExitFailed, r.code, args)
			}
		})
	}
}

func TestUnreadableAnswers(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, "<html>")
	for _, args := range [][]string{{"dead"}, {"dead", "show", "a"}, {"dead", "-o", "json"}, {"rejected"}, {"rejected", "show", "retries", "1", "--raw"},
		{"status"}, {"attention"}, {"health"}, {"errors"}, {"due"}, {"job", "a"}, {"deploys"}, {"deploys", "mark", "v1"}, {"whoami"}} {
		r := millrace(t, append(args, "--http-addr", a.Addr())...)
		require.Equal(t, ExitFailed, r.code, args)
		require.Contains(t, r.err, "the sidecar's answer")
	}
}

func TestNoSidecar(t *testing.T) {
	r := millrace(t, "scheduled", "--http-addr", "127.0.0.1:1")
	require.Equal(t, ExitFailed, r.code)
	require.Equal(t, "millrace: no sidecar answers at http://127.0.0.1:1: start one (millrace serve, or millrace up), or say where it is with --http-addr or --api-url\n", r.err)

	r = millrace(t, "scheduled", "--http-addr", "::x::")
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, "--http-addr")

	r = millrace(t, "scheduled", "--http-addr", "nowhere.invalid:1")
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, "nowhere.invalid")
}

func TestRejectedRecords(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"total_count":9,"filtered_count":4,"page_count":2,"items":[
		{"stream":"retries","offset":3,"reason":"no jid","size":12,"body":"{\"a\":1}","encoding":"utf-8"}]}`)
	r := millrace(t, "rejected", "--stream", "retries", "--limit", "1", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, "STREAM   OFFSET  BYTES  REASON  RECORD\nretries  3       12     no jid  {\"a\":1}\n1 of 4 that match, 9 in all; more with --page 2\n", r.out)
	require.Equal(t, []string{"GET /api/rejected?page=1&page_size=1&stream=retries"}, a.Asked())
}

func TestRejectedRecordAsBytes(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `{"stream":"retries","offset":3,"size":9,"body":"AAH/","encoding":"base64","truncated":true}`)
	r := millrace(t, "rejected", "show", "retries", "3", "--raw", "--http-addr", a.Addr())
	require.Zero(t, r.code)
	require.Equal(t, "\x00\x01\xff", r.out)
	require.Equal(t, "millrace: only the first 3 of 9 bytes are kept\n", r.err)
}

func TestResubmitSendsFileUnchanged(t *testing.T) {
	const fixed = "{\"b\": 1,  \"a\": \"<\"}\n"
	a := clitest.NewAPI(t, http.StatusNoContent, "")
	r := millrace(t, "rejected", "resubmit", "retries", "3", clitest.File(t, fixed), "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{"POST /api/rejected/retries/3/resubmit application/json " + strings.TrimSpace(fixed)}, a.Asked())

	r = millrace(t, "rejected", "resubmit", "retries", "3", clitest.File(t, "{"), "--http-addr", a.Addr())
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, "no JSON")

	r = millrace(t, "rejected", "resubmit", "retries", "3", "/nowhere", "--http-addr", a.Addr())
	require.Equal(t, ExitFailed, r.code)
	require.Contains(t, r.err, "/nowhere")
}

func TestSynonyms(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"items":[]}`)
	for _, line := range []string{"queues ls", "queues get a", "dead ls", "dead rm a -y", "processes ls", "processes get a", "workers", "operations ls", "rejected ls", "job get a", "alerts"} {
		require.Zero(t, millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...).code, line)
	}
}

func TestEmptyListsPrintOneMessage(t *testing.T) {
	lists := clitest.NewAPI(t, 200, `{"total_count":0,"items":[],"complete":true}`)
	arrays := clitest.NewAPI(t, 200, `[]`)
	for line, a := range map[string]*clitest.API{
		"queues": lists, "processes": lists, "scheduled": lists, "retries": lists, "gated": lists, "dead": lists, "jobs": lists, "journal": lists, "rejected": lists,
		"errors": lists, "due": lists, "attention": lists, "operations": arrays, "deploys": arrays, "queues peek a": arrays,
	} {
		r := millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...)
		require.Equal(t, "none\n", r.out, "%s: %s", line, r.err)
	}
}
