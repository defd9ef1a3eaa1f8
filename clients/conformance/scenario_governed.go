package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// definesQueues returns a command of the producer that defines governed queues.
func definesQueues(queues ...map[string]any) map[string]any {
	return map[string]any{"op": "define", "source": "shop", "queues": append([]map[string]any{}, queues...), "timeout": 30}
}

func governedQueues(t *trial) {
	t.serve()
	t.declare("imports")
	imports := map[string]any{"name": "imports", "key": "args.0", "max_waiting": 1, "weights": map[string]any{"big": 3}, "ahead": 7, "paused": true}
	defined := t.produce(definesQueues(imports), definesQueues(imports), definesQueues(map[string]any{"name": "imports", "key": "args..0"}))
	require.Equal(t, []string{"imports"}, defined[0].Made, defined[0].Message)
	require.Equal(t, 1, defined[1].Unchanged, defined[1].Message)
	require.Equal(t, "Invalid", defined[2].Error, "a key that is no path")

	// state returns the state of the queue, as the API has it.
	state := func() string { return t.governed().Get("state").String() }
	t.eventually(func() bool { return state() == "governed" }, "the queue is governed")
	definition := t.governed().Get("definition")
	require.JSONEq(t, `{"key":"args.0","max_waiting":1,"weights":{"big":3},"ahead":7,"paused":true}`, definition.Raw, "the definition is what the program gave")

	into := map[string]any{"queue": "imports"}
	taken := t.produce(with(into, "Append", "first"))
	require.Empty(t, taken[0].Error, taken[0].Message)
	t.eventually(func() bool { return state() == "full" }, "a queue in which max_waiting jobs wait is full")
	full := t.produce(withTimeout(3, with(into, "Append", "refused")))
	require.Equal(t, "Refused", full[0].Error, "a job for a full queue is refused")

	w := t.worker(settings{Queues: []string{"imports"}}).ready("imports")
	require.Zero(t, w.count("ran", ""), "the queue is paused")
	delete(imports, "paused")
	require.Equal(t, []string{"imports"}, t.produce(definesQueues(imports))[0].Changed)
	w.did("ran", "first")
	t.eventually(func() bool { return state() == "governed" }, "the queue takes jobs again")
	require.Equal(t, []string{"imports"}, t.produce(definesQueues())[0].Forgotten)
	t.eventually(func() bool { return !t.governed().Exists() }, "the queue is governed no longer")
	require.Empty(t, t.produce(with(into, "Append", "plain"))[0].Error)
	w.did("ran", "plain")
	require.Equal(t, 1, w.count("ran", "first"))
	require.Zero(t, w.count("ran", "refused"), "a refused job does not run")
	t.understood()
	w.stop(t, 20*time.Second)
}

// governed returns the governed queue imports, as the API has it.
func (t *trial) governed() gjson.Result {
	all := t.tryAPI(http.MethodGet, "/api/governed-queues").Array()
	i := slices.IndexFunc(all, func(q gjson.Result) bool { return q.Get("name").String() == "imports" })
	if i < 0 {
		return gjson.Result{}
	}
	return all[i]
}
