package main

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// definesLimits returns a command of the producer that defines limits.
func definesLimits(source string, limits ...map[string]any) map[string]any {
	return map[string]any{"op": "define", "source": source, "limits": append([]map[string]any{}, limits...), "timeout": 30}
}

// limitedBy returns a command that enqueues a limited job. The text of the job begins with the key.
func limitedBy(key, class string, args ...any) map[string]any {
	return with(map[string]any{"limit_key": key}, class, args...)
}

func limitedJobs(t *trial) {
	t.serve()
	t.declare("default")
	each := map[string]any{"name": "each", "queues": []string{"default"}, "classes": []string{"Sleep", "FailSoon"}, "per": []string{"key"}, "concurrency": 2,
		"overrides": map[string]any{"one": map[string]any{"concurrency": 1}}}
	slow := map[string]any{"name": "slow", "classes": []string{"Append"}, "rate": map[string]any{"jobs": 60, "seconds": 30, "burst": 1}, "paused": false}
	defined := t.produce(definesLimits("shop", each, slow), definesLimits("shop", each, slow), definesLimits("shop", each), definesLimits("wrong", map[string]any{"name": "none"}))
	require.Equal(t, []string{"each", "slow"}, defined[0].Made, defined[0].Message)
	require.Equal(t, 2, defined[1].Unchanged, defined[1].Message)
	require.Equal(t, []string{"slow"}, defined[2].Forgotten, defined[2].Message)
	require.Equal(t, "Invalid", defined[3].Error, "a limit without a bound")

	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 10, MaxDeaths: 5}).ready("default")
	var commands []map[string]any
	for range 6 {
		commands = append(commands, limitedBy("a", "Sleep", "a", 0.3), limitedBy("b", "Sleep", "b", 0.3), limitedBy("one", "Sleep", "one", 0.2))
	}
	soon := limitedBy("a", "Sleep", "a", 0.3)
	soon["op"], soon["in"] = "enqueue_in", 0.5
	commands = append(commands, soon, limitedBy("b", "FailSoon", "retried", 1), enqueue("Sleep", "free", 0.1), with(map[string]any{"limited": true}, "Sleep", "keyless", 0.1))
	var jids []string
	for _, r := range t.produce(commands...) {
		jids = append(jids, r.jid(t))
	}
	t.eventually(func() bool { return w.count("ran", "") == len(jids)+1 }, "all jobs run, and one of them twice")
	effects := w.effects()
	for key, most := range map[string]int{"a": 2, "b": 2, "one": 1} {
		require.Equal(t, most, atOnce(effects, key), "jobs of key %s that ran at once", key)
	}
	t.eventually(func() bool { return len(ended(t.seen(wire.JobEnds))) >= len(jids) }, "the end of each limited job is in jobs.ends")
	ends := ended(t.records(wire.JobEnds))
	require.Equal(t, len(jids), len(ends), "ends: one for each attempt of a limited job, and for no other")
	slots := map[string]bool{}
	for _, end := range ends {
		slots[end.slot] = true
		require.Contains(t, end.process, fmt.Sprint(":", w.cmd.Process.Pid), "an end names its process")
	}
	require.Equal(t, len(jids), len(slots), "each end is of another slot")
	t.noSlots()

	// A copy of a job that has ended does not run.
	copied := job("Sleep", 0, "copy", 0)
	copied.Headers = amqp.Table{wire.HeaderSlot: ends[0].slot, wire.HeaderClaim: "1"}
	t.put("default", copied)
	t.eventually(func() bool { return t.empty("default") }, "the worker takes the copy")
	require.Zero(t, w.count("began", "copy"), "a job that has ended is dropped")

	t.survives(w)
	t.noSlots()
	t.understood()
	w.stop(t, 20*time.Second)
}

// survives kills a worker that runs limited jobs. They come again, on the slots that they hold.
func (t *trial) survives(w *worker) {
	t.produce(limitedBy("k", "Sleep", "k", 3), limitedBy("k", "Sleep", "k", 3), limitedBy("k", "Sleep", "k last", 0))
	t.eventually(func() bool { return w.count("began", "k") == 2 }, "two jobs of a key run")
	w.kill()
	require.Zero(t, w.count("began", "k last"), "the third waits")
	w.launch()
	w.did("ran", "k last")
	t.eventually(func() bool { return w.count("ran", "k") == 2 }, "both killed jobs run to their end")
	require.Equal(t, 4, w.count("began", "k"), "each killed job runs once more")
	first := func(what, text string) float64 {
		effects := w.effects()
		return effects[slices.IndexFunc(effects, func(e effect) bool { return e.what == what && e.text == text })].at
	}
	require.GreaterOrEqual(t, first("began", "k last"), first("ran", "k"), "the third begins when a killed one has ended")
}

// endedJob is what a worker says in jobs.ends of one job.
type endedJob struct{ slot, process string }

// ended returns what workers say in records of jobs.ends. The leader writes claims.
func ended(records [][]byte) (all []endedJob) {
	for _, body := range records {
		r := gjson.ParseBytes(body)
		if r.Get("type").String() != "ended" {
			continue
		}
		slots := r.Get("slots").Array()
		if !r.Get("slots").Exists() {
			slots = []gjson.Result{r.Get("slot")}
		}
		for _, slot := range slots {
			all = append(all, endedJob{slot.String(), r.Get("process").String()})
		}
	}
	return all
}

// noSlots waits until no job holds a slot.
func (t *trial) noSlots() {
	t.eventually(func() bool {
		slots := t.tryAPI(http.MethodGet, "/api/slots")
		return slots.IsArray() && len(slots.Array()) == 0
	}, "no job holds a slot")
}

// atOnce returns how many jobs with a text ran at once, at most.
func atOnce(effects []effect, text string) (most int) {
	effects = slices.Clone(effects)
	slices.SortStableFunc(effects, func(a, b effect) int { return cmp.Compare(a.at, b.at) })
	running := 0
	for _, e := range effects {
		switch {
		case e.text != text:
		case e.what == "began":
			running++
			most = max(most, running)
		case e.what == "ran":
			running--
		}
	}
	return most
}
