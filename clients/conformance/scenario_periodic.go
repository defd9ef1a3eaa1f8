package main

import (
	"net/http"
	"time"

	"github.com/stretchr/testify/require"
)

// defines returns a command of the producer that defines periodic jobs.
func defines(source string, jobs ...map[string]any) map[string]any {
	return map[string]any{"op": "define", "source": source, "jobs": append([]map[string]any{}, jobs...), "timeout": 30}
}

func periodicJobs(t *trial) {
	t.serve()
	t.declare("default")
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 3}).ready("default")
	often := map[string]any{"name": "often", "every": 1, "class": "Append", "args": []any{"often"}, "overlap": "skip"}
	nightly := map[string]any{"name": "nightly", "cron": "0 3 * * *", "tz": "Europe/Stockholm", "class": "Append", "args": []any{"nightly", map[string]any{"n": 1}}, "queue": "reports",
		"catch_up": "last", "except": []string{"2026-12-24..2026-12-26"}, "paused": true}
	again := map[string]any{"name": "nightly", "cron": "30 3 * * *", "class": "Append", "args": []any{"nightly"}}
	results := t.produce(
		defines("shop", often, nightly), defines("shop", often, nightly), defines("other", nightly),
		defines("wrong", map[string]any{"name": "wrong", "cron": "0 3 * *", "class": "Append", "args": []any{}}),
		defines("wrong", map[string]any{"name": "wrong", "every": 60, "class": "", "args": []any{}}),
	)
	require.Equal(t, []string{"often", "nightly"}, results[0].Made, results[0].Message)
	require.Empty(t, results[1].Error, results[1].Message)
	require.Empty(t, results[1].Made)
	require.Equal(t, 2, results[1].Unchanged)
	require.Equal(t, "Refused", results[2].Error)
	require.Contains(t, results[2].Message, `defined by source "shop"`)
	require.Equal(t, "Invalid", results[3].Error)
	require.Contains(t, results[3].Message, "4 fields, not 5")
	require.Equal(t, "Invalid", results[4].Error)
	w.did("ran", "often")

	layer := t.tryAPI(http.MethodGet, "/api/periodic-jobs/nightly").Get("layers.code")
	require.Equal(t, "shop", layer.Get("source").String())
	require.JSONEq(t, `{"cron":"0 3 * * *","tz":"Europe/Stockholm","catch_up":"last","except":["2026-12-24..2026-12-26"],"paused":true,
		"job":{"class":"Append","args":["nightly",{"n":1}],"queue":"reports"}}`, layer.Get("value").Raw, "the definition is what the program gave")

	last := t.produce(defines("shop", again))
	require.Equal(t, []string{"nightly"}, last[0].Changed, last[0].Message)
	require.Equal(t, []string{"often"}, last[0].Forgotten)
	t.understood()
	w.stop(t, 20*time.Second)

	url := t.room.amqpURL
	t.room.amqpURL = "amqp://guest:guest@127.0.0.1:1/"
	nowhere := defines("shop", often)
	nowhere["timeout"] = 1
	unreached := t.produce(nowhere)
	t.room.amqpURL = url
	require.Equal(t, "Unreachable", unreached[0].Error)
}
