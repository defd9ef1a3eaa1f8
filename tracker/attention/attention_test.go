package attention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker/attention"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

func queue(name string, ready, consumers int64) queues.Queue {
	return queues.Queue{Name: name, QueueInfo: broker.QueueInfo{Ready: ready, Consumers: consumers}}
}

func process(identity, state, version string) processes.Process {
	return processes.Process{Heartbeat: wire.Heartbeat{Identity: identity, Tag: "t", Version: version, Busy: 2}, State: state, Silent: 90 * time.Second}
}

// hangs returns a process whose slots are all taken by jobs of a queue and a class, with these run
// times.
func hangs(queue string, class string, ago ...time.Duration) processes.Process {
	now := time.Unix(1_800_000_000, 0)
	p := processes.Process{State: processes.Live, Heartbeat: wire.Heartbeat{Identity: "h:1:x", Beat: now, Queues: []string{"queue." + queue}, Concurrency: int64(len(ago)), Busy: int64(len(ago))}}
	for i, d := range ago {
		p.Work = append(p.Work, wire.Work{JID: string(rune('a' + i)), Class: class, Queue: queue, StartedAt: now.Add(-d)})
	}
	return p
}

// kinds lists the findings as "severity kind subject".
func kinds(f attention.Facts) []string {
	found := []string{}
	for _, i := range attention.Look(f) {
		found = append(found, i.Severity+" "+i.Kind+" "+i.Subject)
	}
	return found
}

func TestHealthyFactsHaveNoFindings(t *testing.T) {
	require.Empty(t, attention.Look(attention.Facts{}))
	require.NotNil(t, attention.Look(attention.Facts{}))
	require.Empty(t, kinds(attention.Facts{
		Queues:    []queues.Queue{queue("a", 0, 0), queue("b", 1000, 1)},
		Processes: []processes.Process{process("p", processes.Live, "1"), process("q", processes.Quiet, "1")},
		Lag:       5 * time.Second, Overdue: time.Minute, Failed: .9, FailedBefore: 0, SLO: func(string) time.Duration { return 0 },
	}))
	require.Empty(t, kinds(attention.Facts{Failed: 10, FailedBefore: 4, Before: 24 * time.Hour}), "the rate is hardly higher than before")
	require.Empty(t, kinds(attention.Facts{Failed: 10}), "there is no earlier rate")
	require.Empty(t, kinds(attention.Facts{Failed: 10, FailedBefore: .1, Before: time.Hour}), "the earlier time is too short")
}

func TestEachKindOfFinding(t *testing.T) {
	old := queue("old", 5, 1)
	old.Oldest = 11 * time.Second
	exact := old
	exact.Exact = true
	older := exact
	older.Oldest = 26*time.Hour + 59*time.Second
	growing := queue("growing", 900, 1)
	growing.Growth = 1
	closed := queue("q", 0, 1)
	closed.State = "closed"
	for name, c := range map[string]struct {
		f    attention.Facts
		want string
		text string
	}{
		"alarm":     {attention.Facts{Alarms: []string{"memory alarm on n"}}, "critical broker_alarm memory alarm on n", "the broker has an alarm and may block publishers: memory alarm on n"},
		"no leader": {attention.Facts{NoLeader: "a client has the lock"}, "critical no_leader ", "no sidecar leads, no jobs are dispatched: a client has the lock"},
		"lag":       {attention.Facts{Lag: 6 * time.Second}, "warning view_lag ", "the data shown are 6 s old"},
		"due":       {attention.Facts{Overdue: 61 * time.Second}, "critical schedule_overdue ", "the oldest due job is 1 min 1 s late"},
		"degraded": {attention.Facts{Degraded: []attention.Failing{{Subject: "queue jobs.letters", Problem: "404", Costs: "letters are lost", Node: "rabbit@b", For: time.Minute}}},
			"warning degraded queue jobs.letters", "letters are lost while node rabbit@b is away: 404"},
		"no node": {attention.Facts{Degraded: []attention.Failing{{Subject: "management API", Problem: "refused", Costs: "no figures"}}},
			"warning degraded management API", "no figures: refused"},
		"down, on a node": {attention.Facts{Queues: []queues.Queue{{Name: "q", QueueInfo: broker.QueueInfo{State: "down", Node: "rabbit@b"}}}},
			"critical queue_down q", "the broker says that it is down, on node rabbit@b: see the broker's log"},
		"down": {attention.Facts{Queues: []queues.Queue{closed}}, "critical queue_down q", "the broker says that it is closed: see the broker's log"},
		"paused": {attention.Facts{Queues: []queues.Queue{queue("a", 3, 0)}, Paused: map[string]wire.Pause{"a": {Actor: "ann", Reason: "a release"}}},
			"warning queue_paused a", "3 jobs wait and the queue is paused by ann: a release"},
		"no consumer": {attention.Facts{Queues: []queues.Queue{queue("a", 3, 0)}}, "critical no_consumer a", "3 jobs wait and no worker consumes the queue"},
		"old": {attention.Facts{Queues: []queues.Queue{old}, SLO: func(string) time.Duration { return 10 * time.Second }}, "critical oldest_too_old old",
			"the oldest job has waited at least 11 s; the limit is 10 s"},
		"exact": {attention.Facts{Queues: []queues.Queue{exact}, SLO: func(string) time.Duration { return 10 * time.Second }}, "critical oldest_too_old old",
			"the oldest job has waited 11 s; the limit is 10 s"},
		"old, by default": {attention.Facts{Queues: []queues.Queue{older}, SLO: func(string) time.Duration { return 10 * time.Minute }}, "critical oldest_too_old old",
			"the oldest job has waited 1 d 2 h; the limit is 10 min"},
		"saturated": {attention.Facts{Queues: []queues.Queue{queue("a", 38, 1)}, Processes: []processes.Process{hangs("a", "C", 5*time.Minute, 190*time.Second)}},
			"critical saturated a", "38 jobs wait, all 2 slots of its workers are busy, and none was taken for 3 min 10 s"},
		"stuck": {attention.Facts{Processes: []processes.Process{hangs("a", "C", 301*time.Second)}, Usual: map[string]time.Duration{"C": 3 * time.Second}},
			"warning job_stuck a", "C has run for 5 min 1 s on h:1:x, 100 times as long as usual"},
		"all stuck": {attention.Facts{Processes: []processes.Process{hangs("a", "C", 400*time.Second, 3*time.Hour, time.Second, time.Hour)}, Usual: map[string]time.Duration{"C": 3 * time.Second}},
			"warning job_stuck b", "C has run for 3 h on h:1:x, 3600 times as long as usual; 2 more of this class are stuck"},
		"grows": {attention.Facts{Queues: []queues.Queue{growing}}, "warning queue_growing growing", "it grows by 1.0 jobs/s, 900 jobs wait"},
		"lost":  {attention.Facts{Processes: []processes.Process{process("p", processes.Lost, "")}}, "warning process_lost p", "no heartbeat for 1 min 30 s; 2 jobs were running"},
		"skew": {attention.Facts{Processes: []processes.Process{process("p", processes.Live, "1"), process("q", processes.Live, "2")}}, "warning version_skew t",
			"mixed versions: 1, 2"},
		"storm":      {attention.Facts{Failed: 10, FailedBefore: 3, Before: 23*time.Hour + 45*time.Minute}, "warning retry_storm ", "10.0 failures/s (previous day: 3.0/s)"},
		"storm, new": {attention.Facts{Failed: 10, FailedBefore: 3, Before: 5 * time.Hour}, "warning retry_storm ", "10.0 failures/s (previous 5 hours: 3.0/s)"},
		"dead":       {attention.Facts{Died: 4}, "warning dead_growth ", "4 jobs died in the last 15 minutes"},
		"died":       {attention.Facts{Died: 1}, "warning dead_growth ", "1 job died in the last 15 minutes"},
	} {
		require.Equal(t, []string{c.want}, kinds(c.f), name)
		require.Equal(t, c.text, attention.Look(c.f)[0].Text, name)
	}
}

// An empty paused queue needs no attention. A pause may have no user and no reason.
func TestEmptyPausedQueueIsNotReported(t *testing.T) {
	paused := map[string]wire.Pause{"a": {}}
	require.Empty(t, kinds(attention.Facts{Queues: []queues.Queue{queue("a", 0, 0)}, Paused: paused}))
	require.Equal(t, "1 job waits and the queue is paused", attention.Look(attention.Facts{Queues: []queues.Queue{queue("a", 1, 0)}, Paused: paused})[0].Text)
}

func TestMostSevereFindingsComeFirst(t *testing.T) {
	require.Equal(t, []string{"critical broker_alarm x", "critical no_consumer a", "critical no_consumer b", "warning view_lag ", "warning dead_growth ", "warning ticks_late b", "warning periodic_incomplete a"},
		kinds(attention.Facts{Died: 1, Lag: time.Minute, Alarms: []string{"x"}, Queues: []queues.Queue{queue("b", 1, 0), queue("a", 1, 0)},
			DefinedFacts: attention.DefinedFacts{Ticks: []attention.Ticks{{Name: "a", Incomplete: "it has no job"}, {Name: "b", Late: time.Hour}}}}))
}

// A queue stalls when no job was taken for a minute, or for longer than its jobs usually run, which
// may be an hour.
func TestStalled(t *testing.T) {
	usual := map[string]time.Duration{"Slow": time.Hour}
	at := func(class string, ran, unserved time.Duration, ready, consumers int64) bool {
		q := queue("a", ready, consumers)
		q.Unserved = unserved
		_, is := attention.Stalled(&q, processes.Saturated([]processes.Process{hangs("a", class, 3*time.Hour, ran)}), usual)
		return is
	}
	require.False(t, at("C", 59*time.Second, 59*time.Second, 1, 1))
	require.True(t, at("C", time.Minute, 0, 1, 1))
	require.True(t, at("C", time.Second, time.Minute, 1, 1), "the workers are busy with jobs of other queues")
	require.False(t, at("C", time.Minute, time.Minute, 0, 1), "no job waits")
	require.False(t, at("C", time.Minute, time.Minute, 1, 0), "a queue without consumers is another finding")
	require.False(t, at("Slow", 59*time.Minute, time.Minute, 1, 1), "such jobs usually run as long")
	require.True(t, at("Slow", time.Hour, 0, 1, 1))
	paused := map[string]wire.Pause{"a": {}}
	require.Equal(t, []string{"warning queue_paused a"}, kinds(attention.Facts{Queues: []queues.Queue{queue("a", 3, 1)}, Processes: []processes.Process{hangs("a", "C", time.Hour)}, Paused: paused}))
}

func TestStuckJobs(t *testing.T) {
	usual := map[string]time.Duration{"C": 3 * time.Second, "Slow": time.Hour}
	lost := hangs("a", "C", time.Hour)
	lost.State = processes.Lost
	all := []processes.Process{hangs("a", "C", 5*time.Minute, time.Hour), hangs("a", "Slow", 9*time.Hour, 11*time.Hour), hangs("a", "Unknown", 100*time.Hour), lost}
	require.Equal(t, 2, attention.StuckJobs(all, usual))
}

// What went wrong with ticks is shown for an hour.
func TestTicksThatWentWrong(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(ago time.Duration) float64 { return wire.Seconds(now.Add(-ago)) }
	value := func(text string) map[string]wire.DefinedLayer {
		return map[string]wire.DefinedLayer{wire.LayerCode: {Value: []byte(text)}}
	}
	whole := value(`{"every":60,"job":{"class":"C"}}`)
	jobs := []*wire.PeriodicJob{
		{Name: "fine", Layers: whole, Recent: []wire.Tick{{Tick: now.Unix() - 60, Outcome: wire.TickMade, At: at(time.Minute)}}},
		{Name: "long ago", Layers: whole, Recent: []wire.Tick{{Outcome: wire.TickSkipped, Why: wire.WhyMissed, At: at(2 * time.Hour)}}},
		{Name: "missed", Layers: whole, Recent: []wire.Tick{{Outcome: wire.TickSkipped, Why: wire.WhyMissed, Count: 3, At: at(time.Minute)}, {Outcome: wire.TickSkipped, Why: wire.WhyMissed, At: at(time.Minute)}}},
		{Name: "late", Layers: whole, Recent: []wire.Tick{{Tick: now.Unix() - 300, Outcome: wire.TickMade, At: at(time.Minute)}}},
		{Name: "part", Layers: value(`{"every":60}`)},
	}
	var got []string
	for _, i := range attention.Look(attention.Facts{DefinedFacts: attention.DefinedFacts{Ticks: attention.TicksOf(jobs, now)}}) {
		got = append(got, i.Kind+" "+i.Subject+": "+i.Text)
	}
	require.ElementsMatch(t, []string{
		"ticks_missed missed: 4 ticks were missed in the last hour: no sidecar led in time, and catch_up does not make up for that",
		"ticks_late late: a job was enqueued 4 min after its tick",
		"periodic_incomplete part: the periodic job has no ticks: it has no job: give job, an object with a class",
	}, got)
}

// A limit stalls when a part of it is full, jobs wait, and no slot has become free for five
// minutes, or for longer than its jobs usually run.
func TestStalledLimits(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	part := func(key, class string, waiting, used int, newest time.Duration) occupancy.Part {
		oldest := &wire.HeldSlot{JID: "old-" + key, At: wire.Seconds(now.Add(-3 * time.Hour)), Group: wire.Group{Queue: "imports", Class: class, Key: key}}
		return occupancy.Part{Group: wire.Group{Key: key}, Concurrency: 2, Waiting: waiting, Used: occupancy.Used{Slots: used, Oldest: oldest, Newest: wire.Seconds(now.Add(-newest))}}
	}
	usual := map[string]time.Duration{"Slow": time.Hour}
	look := func(l attention.Limit, all ...queues.Queue) (texts []string) {
		f := attention.Facts{Queues: all, Usual: usual, DefinedFacts: attention.DefinedFacts{Now: now, Limits: []attention.Limit{l}}}
		for _, i := range attention.Look(f) {
			texts = append(texts, i.Severity+" "+i.Kind+" "+i.Subject+": "+i.Text)
		}
		return texts
	}
	limit := func(parts ...occupancy.Part) attention.Limit {
		return attention.Limit{Name: "each", Limit: occupancy.Limit{Parts: parts}}
	}
	require.Empty(t, look(limit(part("a", "C", 3, 2, 299*time.Second), part("b", "C", 0, 2, time.Hour), part("c", "C", 3, 1, time.Hour), part("d", "Slow", 3, 2, 59*time.Minute))))
	const stalls = "critical limit_stalled each: 3 jobs wait, all 2 slots of b in use, and none has become free for 7 min: job old-b of queue imports has held one for longest, "
	one := limit(part("b", "C", 3, 2, 7*time.Minute))
	require.Equal(t, []string{stalls + "and no worker consumes the queue"}, look(one, queue("imports", 0, 0)))
	require.Equal(t, []string{stalls + "and the queue has 2 consumers"}, look(one, queue("imports", 0, 2)))
	require.Equal(t, []string{stalls + "and the queue does not exist"}, look(one, queue("other", 0, 2)))
	require.Equal(t, []string{stalls + "and the broker does not say who consumes the queue"}, look(one))
	more := limit(part("a", "C", 1, 2, 6*time.Minute), part("b", "C", 3, 2, 7*time.Minute))
	require.Equal(t, []string{stalls + "and the queue has 1 consumer; parts of the limit that stall too: 1"}, look(more, queue("imports", 0, 1)))
	more.Paused = true
	require.Empty(t, look(more))
	require.Equal(t, []string{"warning limit_incomplete part: the limit holds nothing back: give concurrency or rate"},
		look(attention.Limit{Name: "part", Incomplete: "give concurrency or rate"}))
	require.Equal(t, []string{"warning slots_freed "}, kinds(attention.Facts{DefinedFacts: attention.DefinedFacts{Freed: 3}}))
}

// A governed queue that is bypassed, or cannot begin, is shown.
func TestGovernedQueuesThatDoNotWork(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	at := func(ago time.Duration) float64 { return wire.Seconds(now.Add(-ago)) }
	queues := []*wire.DefinedQueue{
		{Name: "fine", State: wire.QueueGoverned, Since: at(time.Hour)},
		{Name: "full", State: wire.QueueFull, Since: at(2 * time.Minute)},
		{Name: "taken", State: wire.QueueSuspended, Since: at(time.Second)},
		{Name: "begins", State: wire.QueueDraining, Since: at(time.Minute)},
		{Name: "drains", State: wire.QueueDraining, Since: at(6 * time.Minute)},
		{Name: "beside", State: wire.QueueBypassed, Since: at(time.Second)},
		{Name: "stuck", State: wire.QueueSwitching, Since: at(6 * time.Minute)},
	}
	var got []string
	for _, i := range attention.Look(attention.Facts{DefinedFacts: attention.DefinedFacts{Governed: attention.GovernedOf(queues, now)}}) {
		got = append(got, i.Kind+" "+i.Subject+": "+i.Text)
	}
	require.Equal(t, []string{
		"queue_full full: as many jobs wait as its max_waiting allows: for 2 min, more have been refused",
		"queue_suspended taken: as many jobs wait as its max_waiting allows, but more are taken: the node of the queue jobs.full is away",
		"queue_bypassed beside: a client had bound the governed queue to jobs.direct: jobs came to it without limits; workers need not bind a queue",
		"queue_draining drains: no job has been delivered for 6 min: jobs from before the queue was governed are still in it",
		"queue_draining stuck: the queue has been switching for 6 min: the log of the leader says why",
	}, got)
}

// Unique jobs about which no leader decides are shown after a minute.
func TestUndecidedUniqueJobs(t *testing.T) {
	look := func(n int64, since time.Duration) []attention.Item {
		return attention.Look(attention.Facts{DefinedFacts: attention.DefinedFacts{Unique: attention.Unique{Undecided: n, For: since}}})
	}
	require.Empty(t, look(3, time.Minute))
	require.Empty(t, look(0, time.Hour))
	require.Equal(t, []attention.Item{{Kind: "unique_undecided", Severity: "critical", Value: 61, Text: "for 1 min 1 s, no leader has decided which unique jobs have their keys: 1 job waits"}}, look(1, 61*time.Second))
}
