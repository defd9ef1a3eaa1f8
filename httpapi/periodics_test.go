package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/wire"
)

// defined journals a layer of a periodic job.
func (w *world) defined(name, layer, value string) {
	w.journal(wire.JournalRecord{Type: wire.TypeDefined, At: 5, Actor: "ann", Defined: []wire.Defined{{Kind: wire.KindPeriodic, Name: name, Layer: layer, Source: "s", Value: json.RawMessage(value)}}})
}

func TestPeriodicJobs(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, "[]\n", w.get("/api/periodic-jobs").body)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.defined("nightly", wire.LayerCode, `{"cron":"0 3 * * *","tz":"Europe/Stockholm","job":{"class":"Report","args":[{"password":"x"}]}}`)
	w.defined("nightly", wire.LayerOperator, `{"paused":true}`)
	w.defined("part", wire.LayerOperator, `{"every":60}`)
	by := int64(3)
	w.journal(wire.JournalRecord{Type: wire.TypeTicked, At: 7, Ticks: []wire.Tick{
		{Periodic: "nightly", Tick: 120, From: 60, Count: 2, Outcome: wire.TickSkipped, Why: wire.WhyMissed}, {Periodic: "nightly", Tick: 180, Outcome: wire.TickMade, JID: "j", By: &by}}})

	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/periodic-jobs").body), &all))
	require.Len(t, all, 2)
	require.Equal(t, "paused", all[0]["state"])
	require.Equal(t, "0 3 * * * Europe/Stockholm", all[0]["schedule"])
	require.Equal(t, "Report", all[0]["class"])
	require.Equal(t, "default", all[0]["queue"])
	require.Equal(t, map[string]any{"tick": 180.0, "outcome": "made", "jid": "j", "by": 3.0, "at": 7.0}, all[0]["last"])
	require.Len(t, all[0]["next"], 1)
	require.Equal(t, "incomplete", all[1]["state"])
	require.Contains(t, all[1]["problem"], "it has no job")

	var one map[string]any
	require.NoError(t, json.Unmarshal([]byte(w.get("/api/periodic-jobs/nightly?next=3").body), &one))
	require.Len(t, one["next"], 3)
	require.Len(t, one["ticks"], 2)
	require.Equal(t, "made", one["ticks"].([]any)[0].(map[string]any)["outcome"])
	w.get("/api/periodic-jobs/none").problem(t, http.StatusNotFound, "not_found")
	w.get("/api/periodic-jobs/nightly?next=101").problem(t, http.StatusBadRequest, "bad_request")
	require.Contains(t, w.get("/api/journal?op=missed").body, `"count":2`)
	require.Contains(t, w.get("/api/journal?op=defined").body, `"periodic":"part"`)
}

func TestNextTicksOfASchedule(t *testing.T) {
	w := newWorld(t)
	for path, next := range map[string]string{
		"cron=0+3+*+*+*&tz=Europe/Stockholm&n=2&from=1795831200": "[1795917600,1796004000]",
		"every=90&n=2&from=1795831200":                           "[1795831290,1795831380]",
		"cron=0+3+*+*+*&n=1&from=2026-11-29T00:00:00Z":           "[1795921200]",
	} {
		require.JSONEq(t, `{"next":`+next+`}`, w.get("/api/next-ticks?"+path).body, path)
	}
	require.Contains(t, w.get("/api/next-ticks?every=60").body, ",")
	for path, says := range map[string]string{
		"":                        "give either cron or every",
		"every=60&cron=@daily":    "give either cron or every",
		"every=0":                 "from 1 to",
		"cron=0+3+*+*":            "4 fields, not 5",
		"cron=@daily&tz=Nowhere":  "tz",
		"cron=@daily&tz=Local":    "differs by machine",
		"cron=@daily&n=101":       "from 1 to 100",
		"cron=0+0+30+2+*":         "never matches",
		"cron=@daily&from=ever":   "from",
		"cron=@daily&to=1&from=1": "not known here",
	} {
		a := w.get("/api/next-ticks?" + path)
		a.problem(t, http.StatusBadRequest, "bad_request")
		require.Contains(t, a.body, says, path)
	}
}

func TestArgumentsOfPeriodicJobsAreHidden(t *testing.T) {
	names, err := httpapi.ParseHideArgs(httpapi.DefaultHideArgs)
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.HideArgs = names })
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.defined("nightly", wire.LayerCode, `{"every":60,"job":{"class":"Report","args":[{"password":"x"}]}}`)
	require.NotContains(t, w.as("monitoring", http.MethodGet, "/api/periodic-jobs/nightly", "").body, `"x"`)
	require.Contains(t, w.as("management", http.MethodGet, "/api/periodic-jobs/nightly", "").body, `"x"`)
}

func TestCommandsAboutPeriodicJobs(t *testing.T) {
	w := newWorld(t)
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.onCommand = func(cmd wire.Command) { // as the leader does
		if cmd.Command == wire.CommandDefine && !cmd.DryRun {
			w.defined("a", wire.LayerCode, `{"every":60,"job":{"class":"C"}}`)
		}
	}
	w.reply = wire.Reply{Status: wire.StatusOK, Defined: &wire.DefineResult{Made: []string{"a"}, Changed: []string{}, Forgotten: []string{}}}
	document := `{"source":"app","periodic_jobs":[{"name":"a","every":60,"job":{"class":"C"}}]}`
	require.JSONEq(t, `{"made":["a"],"changed":[],"forgotten":[],"unchanged":0}`, w.do(http.MethodPost, "/api/definitions?dry_run=true", document).body)
	require.True(t, w.commands[0].DryRun)
	require.Equal(t, http.StatusOK, w.do(http.MethodPost, "/api/definitions", document).StatusCode)
	require.Equal(t, "app", w.commands[1].Definitions.Source)
	for _, bad := range []string{`{"source":"s"}`, `{"source":"s","periodic_jobs":[{"name":"a","evry":1}]}`, `{"source":"s","layer":"operator","periodic_jobs":[]}`, `{"periodic_jobs":[]}`, `{"source":"s","layer":null,"periodic_jobs":[]}`} {
		w.do(http.MethodPost, "/api/definitions", bad).problem(t, http.StatusBadRequest, "bad_request")
	}

	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/periodic-jobs/a", `{"cron":"@daily"}`).StatusCode)
	require.Equal(t, wire.LayerOperator, w.commands[2].Definitions.Layer)
	require.JSONEq(t, `{"name":"a","cron":"@daily"}`, string(w.commands[2].Definitions.PeriodicJobs[0]))
	w.do(http.MethodPut, "/api/periodic-jobs/a", `{"name":"b","every":1}`).problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPut, "/api/periodic-jobs/a", ``).problem(t, http.StatusBadRequest, "bad_request")

	n := len(w.commands)
	w.onCommand = func(wire.Command) {
		w.journal(wire.JournalRecord{Type: wire.TypeTicked, Ticks: []wire.Tick{{Periodic: "a", Tick: 60, Outcome: wire.TickRun}}})
	}
	w.reply = wire.Reply{Status: wire.StatusOK, JID: "j", Tick: 120}
	ran := w.do(http.MethodPost, "/api/periodic-jobs/a/run", `{"reason":"now"}`)
	require.Equal(t, http.StatusCreated, ran.StatusCode)
	require.JSONEq(t, `{"jid":"j"}`, ran.body)
	require.JSONEq(t, `{"tick":120}`, w.do(http.MethodPost, "/api/periodic-jobs/a/skip", `{"tick":120}`).body)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPut, "/api/periodic-jobs/a/pause", `{"reason":"why"}`).StatusCode)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodDelete, "/api/periodic-jobs/a?layer=operator", "").StatusCode)
	w.do(http.MethodDelete, "/api/periodic-jobs/a?layer=other", "").problem(t, http.StatusBadRequest, "bad_request")
	var said []string
	for _, c := range w.commands[n:] {
		said = append(said, c.Command+" "+c.Periodic)
	}
	require.Equal(t, []string{"run a", "skip a", "pause a", "forget a"}, said)
}
