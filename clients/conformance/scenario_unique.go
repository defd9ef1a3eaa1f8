package main

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// uniquely returns a command that enqueues a unique job, and asks which job stays.
func uniquely(unique any, class string, args ...any) map[string]any {
	return withTimeout(30, command("enqueue_unique", class, map[string]any{"unique": unique}, args...))
}

func uniqueJobs(t *trial) {
	sidecar := t.serve()
	t.declare("default")
	customer := map[string]any{"by": []string{"class", "args.1.customer"}, "on": "replace", "wait": 2}
	year := float64(time.Now().Add(365*24*time.Hour).Unix()) + 0.5
	later := uniquely(map[string]any{"key": "later"}, "Append", "later")
	later["at"] = year
	results := t.produce(
		uniquely(true, "Sleep", "slow", 3), uniquely(map[string]any{}, "Sleep", "slow", 3), with(map[string]any{"unique": true}, "Sleep", "slow", 3), uniquely(true, "Sleep", "slow", 4),
		uniquely(map[string]any{"key": "order-42", "for": 3600}, "Append", "order"), uniquely(map[string]any{"key": "order-42"}, "Append", "order"),
		uniquely(customer, "Append", "old", map[string]any{"customer": 7, "n": 1}), uniquely(customer, "Append", "new", map[string]any{"n": 2, "customer": 7}),
		later, uniquely(map[string]any{"key": "later"}, "Append", "later"),
		uniquely(map[string]any{"max": 3}, "Append", "wrong"), uniquely(map[string]any{"key": ""}, "Append", "wrong"),
	)
	first := results[0].jid(t)
	require.False(t, results[0].Duplicate)
	require.Equal(t, first, results[1].jid(t), "the first job stays")
	require.True(t, results[1].Duplicate, "a duplicate is reported")
	require.NotEqual(t, first, results[2].jid(t), "enqueue does not wait for the decision")
	require.False(t, results[3].Duplicate, "other args are another job")
	require.Equal(t, results[4].jid(t), results[5].jid(t))
	require.True(t, results[5].Duplicate, "a key is the same for all classes and args")
	require.False(t, results[7].Duplicate, "the later job replaces one that waits")
	require.Equal(t, results[8].jid(t), results[9].jid(t), "a job for later has its key")
	require.Equal(t, []string{"Invalid", "Invalid"}, []string{results[10].Error, results[11].Error})
	require.Empty(t, t.records(wire.ScheduledJobs), "a unique job for later is in jobs.gated")

	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 5}).ready("default")
	w.did("ran", "new")
	w.did("ran", "order")
	t.eventually(func() bool { return w.count("began", "slow") == 2 }, "both slow jobs run")
	running := t.produce(uniquely(true, "Sleep", "slow", 3), uniquely(map[string]any{"key": "order-42"}, "Append", "order"))
	require.True(t, running[0].Duplicate, "a job that runs has its key")
	require.True(t, running[1].Duplicate, "the key is taken for an hour")
	t.eventually(func() bool { return w.count("ran", "slow") == 2 }, "both slow jobs end")
	t.eventually(func() bool { return !t.produce(uniquely(true, "Sleep", "slow", 3))[0].Duplicate }, "a job that has ended has no key")
	require.Zero(t, w.count("ran", "old"), "the job that was replaced does not run")
	require.Equal(t, 1, w.count("ran", "order"))
	require.Zero(t, w.count("ran", "later"))
	t.understood()

	sidecar.stop(t, 20*time.Second)
	undecided := uniquely(map[string]any{"key": "undecided"}, "Append", "undecided")
	undecided["timeout"] = 2
	none := t.produce(undecided)
	require.Equal(t, "Undecided", none[0].Error, none[0].Message)
	require.Contains(t, none[0].Message, "is published")
	t.serve()
	w.did("ran", "undecided")
	w.stop(t, 20*time.Second)
}
