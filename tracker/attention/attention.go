package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// Kinds of what needs attention; their order is that of the list.
const (
	Alarm       = "broker_alarm"
	NoLeader    = "no_leader"
	Lag         = "view_lag"
	Overdue     = "schedule_overdue"
	Degraded    = "degraded"
	Down        = "queue_down"
	NoConsumer  = "no_consumer"
	Saturated   = "saturated"
	TooOld      = "oldest_too_old"
	Lost        = "process_lost"
	JobStuck    = "job_stuck"
	RetryStorm  = "retry_storm"
	DeadGrowth  = "dead_growth"
	Growing     = "queue_growing"
	Paused      = "queue_paused"
	VersionSkew = "version_skew"
	TicksMissed = "ticks_missed"
	TicksLate   = "ticks_late"

	PeriodicIncomplete = "periodic_incomplete"

	LimitStalled    = "limit_stalled"
	LimitIncomplete = "limit_incomplete"
	SlotsFreed      = "slots_freed"

	Full      = "queue_full"
	Suspended = "queue_suspended"
	Bypassed  = "queue_bypassed"
	Draining  = "queue_draining"

	Undecided = "unique_undecided"
)

// Limits beyond which something is worth a look.
const (
	maxLag     = 5 * time.Second
	maxOverdue = time.Minute
	stormRate  = 1.0 // failures a second, and
	stormTimes = 3.0 // as many times as before
	// leastBefore is how much must be known of the time before. On a sidecar's first hours there is
	// nothing to compare with.
	leastBefore = 2 * time.Hour
	growsFor    = 5 * time.Minute

	stallsAfter = time.Minute     // without a job taken from a queue whose workers have no free slot
	stuckAfter  = 5 * time.Minute // of a job that runs, and
	stuckTimes  = 10              // so many times as long as usual
)

// Facts are what is known.
type Facts struct {
	Queues    []queues.Queue
	Alarms    []string
	NoLeader  string // why no sidecar can lead, and what to do about it; empty if one can
	Processes []processes.Process
	Usual     map[string]time.Duration // how long jobs of a class usually run: their 95th percentile
	Lag       time.Duration            // of the view
	Overdue   time.Duration            // of the oldest entry that should have fired
	SLO       func(queue string) time.Duration
	Paused    map[string]wire.Pause
	Degraded  []Failing
	DefinedFacts

	Failed       float64       // failures per second in the last minutes
	FailedBefore float64       // and on average before that
	Before       time.Duration // over which time that average is: up to a day
	Died         int64         // jobs that died in the last quarter of an hour
}

// DefinedFacts are what is known of what users define.
type DefinedFacts struct {
	Ticks    []Ticks
	Now      time.Time
	Limits   []Limit
	Freed    int64 // slots that were freed in the last hour because their jobs were gone
	Governed []Governed
	Unique   Unique
}

// Failing is something that fails and that jobs fire without.
type Failing struct {
	Subject string
	Problem string
	Costs   string // what does not work meanwhile
	Node    string // that is away; empty where that is not known
	For     time.Duration
}

// Item is one problem.
type Item struct {
	Kind     string
	Severity string // critical or warning
	Subject  string // a queue, process, tag, job's id or the broker's words; may be empty
	Text     string
	Value    float64 // what the kind is about: messages, seconds, jobs a second
}

const (
	critical = "critical"
	warning  = "warning"
)

// Look lists what needs attention, the most severe first.
func Look(f Facts) []Item {
	items := []Item{}
	add := func(kind, severity, subject string, value float64, format string, args ...any) {
		items = append(items, Item{kind, severity, subject, fmt.Sprintf(format, args...), value})
	}
	for _, a := range f.Alarms {
		add(Alarm, critical, a, 1, "the broker has an alarm and may block publishers: %s", a)
	}
	if f.NoLeader != "" {
		add(NoLeader, critical, "", 1, "no sidecar leads, no jobs are dispatched: %s", f.NoLeader)
	}
	if f.Lag > maxLag {
		add(Lag, warning, "", f.Lag.Seconds(), "the data shown are %s old", span(f.Lag))
	}
	if f.Overdue > maxOverdue {
		add(Overdue, critical, "", f.Overdue.Seconds(), "the oldest due job is %s late", span(f.Overdue))
	}
	for _, d := range f.Degraded {
		add(Degraded, warning, d.Subject, d.For.Seconds(), "%s%s: %s", d.Costs, onNode(d.Node), d.Problem)
	}
	full := processes.Saturated(f.Processes)
	for i := range f.Queues {
		f.queue(&f.Queues[i], full, add)
	}
	f.workers(add)
	f.periodic(add)
	f.limits(add)
	f.governed(add)
	f.unique(add)
	if f.Failed >= stormRate && f.Failed > stormTimes*f.FailedBefore && f.Before >= leastBefore {
		add(RetryStorm, warning, "", f.Failed, "%.1f failures/s (previous %s: %.1f/s)", f.Failed, hours(f.Before), f.FailedBefore)
	}
	if f.Died > 0 {
		add(DeadGrowth, warning, "", float64(f.Died), "%s died in the last 15 minutes", jobs(f.Died))
	}
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(grave(a), grave(b)), cmp.Compare(order(a), order(b)), strings.Compare(a.Subject, b.Subject))
	})
	return items
}

type adder func(kind, severity, subject string, value float64, format string, args ...any)

// down are the states of a queue that the broker cannot serve. What is published to one may be
// dropped although it is confirmed.
var down = []string{"down", "crashed", "stopped", "terminated", "minority", "closed"}

func (f *Facts) queue(q *queues.Queue, full map[string]processes.Full, add adder) {
	if slices.Contains(down, q.State) {
		add(Down, critical, q.Name, float64(q.Ready), "the broker says that it is %s%s: see the broker's log", q.State, home(q.Node))
	}
	if p, is := f.Paused[q.Name]; is { // its jobs are meant to wait; that it is not forgotten
		if q.Ready > 0 {
			add(Paused, warning, q.Name, float64(q.Ready), "%s and the queue is paused%s", waiting(q), by(p))
		}
		return
	}
	if q.Ready > 0 && q.Consumers == 0 {
		add(NoConsumer, critical, q.Name, float64(q.Ready), "%s and no worker consumes the queue", waiting(q))
	}
	if since, is := Stalled(q, full, f.Usual); is {
		add(Saturated, critical, q.Name, since.Seconds(), "%s, %s, and none was taken for %s", waiting(q), slotsBusy(full[q.Name].Slots), span(since))
	}
	if f.SLO != nil {
		if slo := f.SLO(q.Name); slo > 0 && q.Oldest > slo {
			add(TooOld, critical, q.Name, q.Oldest.Seconds(), "the oldest job has waited %s%s; the limit is %s", atLeast(q), span(q.Oldest), span(slo))
		}
	}
	if q.Growth > 0 && q.Growth*growsFor.Seconds() > max(100, float64(q.Ready)/10) {
		add(Growing, warning, q.Name, q.Growth, "it grows by %.1f jobs/s, %s", q.Growth, waiting(q))
	}
}

// Stalled reports whether a queue makes no progress: jobs wait, its workers have no free slot, and
// none was taken for a minute, or for longer than jobs of the class that began last usually run. It
// returns for how long.
func Stalled(q *queues.Queue, full map[string]processes.Full, usual map[string]time.Duration) (since time.Duration, is bool) {
	f, saturated := full[q.Name]
	if !saturated || q.Ready == 0 || q.Consumers == 0 {
		return 0, false
	}
	since = max(f.For, q.Unserved)
	return since, since >= max(stallsAfter, usual[f.Class])
}

// Stuck reports whether a job runs for so much longer than usual that it may never end. Where it is
// not known what is usual, no job is stuck.
func Stuck(age, usual time.Duration) bool {
	return usual > 0 && age > stuckAfter && age > stuckTimes*usual
}

func waiting(q *queues.Queue) string { return waitingJobs(q.Ready) }

func by(p wire.Pause) string {
	text := ""
	if p.Actor != "" {
		text = " by " + p.Actor
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func atLeast(q *queues.Queue) string {
	if q.Exact {
		return ""
	}
	return "at least "
}

func (f *Facts) workers(add adder) {
	for i := range f.Processes {
		if p := &f.Processes[i]; p.State == processes.Lost {
			add(Lost, warning, p.Identity, p.Silent.Seconds(), "no heartbeat for %s; %s running", span(p.Silent), wereRunning(p.Busy))
		}
	}
	f.stuck(add)
	for tag, versions := range processes.Skews(f.Processes) {
		add(VersionSkew, warning, tag, float64(len(versions)), "mixed versions: %s", strings.Join(versions, ", "))
	}
}

// StuckJobs counts the jobs that are stuck, on all processes that are not lost.
func StuckJobs(all []processes.Process, usual map[string]time.Duration) (n int) {
	eachStuck(all, usual, func(*processes.Process, *wire.Work, time.Duration) { n++ })
	return n
}

func eachStuck(all []processes.Process, usual map[string]time.Duration, see func(*processes.Process, *wire.Work, time.Duration)) {
	for i := range all {
		p := &all[i]
		if p.State == processes.Lost {
			continue
		}
		for j := range p.Work {
			if age := p.Age(&p.Work[j]); Stuck(age, usual[p.Work[j].Class]) {
				see(p, &p.Work[j], age)
			}
		}
	}
}

// stuck adds an item for each class of which jobs are stuck, about the one that has run longest.
func (f *Facts) stuck(add adder) {
	type group struct {
		jid, identity string
		age           time.Duration // of the longest
		count         int64
	}
	found := map[string]*group{}
	eachStuck(f.Processes, f.Usual, func(p *processes.Process, w *wire.Work, age time.Duration) {
		g := found[w.Class]
		if g == nil {
			g = &group{}
			found[w.Class] = g
		}
		if g.count++; age > g.age {
			g.jid, g.identity, g.age = w.JID, p.Identity, age
		}
	})
	for class, g := range found {
		more := ""
		if g.count > 1 {
			more = fmt.Sprintf("; %d more of this class are stuck", g.count-1)
		}
		add(JobStuck, warning, g.jid, g.age.Seconds(), "%s has run for %s on %s, %d times as long as usual%s",
			class, span(g.age), g.identity, g.age/f.Usual[class], more)
	}
}

func grave(i Item) int {
	if i.Severity == critical {
		return 0
	}
	return 1
}

var kinds = []string{Alarm, NoLeader, Lag, Overdue, Degraded, Down, NoConsumer, Saturated, TooOld, LimitStalled, Undecided, Lost, JobStuck, RetryStorm, DeadGrowth, Growing, Paused, VersionSkew,
	TicksMissed, TicksLate, PeriodicIncomplete, LimitIncomplete, SlotsFreed, Full, Suspended, Bypassed, Draining}

func order(i Item) int { return slices.Index(kinds, i.Kind) }

// periodic adds what went wrong with ticks.
func (f *Facts) periodic(add adder) {
	for _, t := range f.Ticks {
		if t.Missed > 0 {
			add(TicksMissed, warning, t.Name, float64(t.Missed), "%s in the last hour: no sidecar led in time, and catch_up does not make up for that", missed(t.Missed))
		}
		if t.Late > 0 {
			add(TicksLate, warning, t.Name, t.Late.Seconds(), "a job was enqueued %s after its tick", span(t.Late))
		}
		if t.Incomplete != "" {
			add(PeriodicIncomplete, warning, t.Name, 1, "the periodic job has no ticks: %s", t.Incomplete)
		}
	}
}

// limits adds what keeps jobs waiting for limits.
func (f *Facts) limits(add adder) {
	for i := range f.Limits {
		l := &f.Limits[i]
		if l.Incomplete != "" {
			add(LimitIncomplete, warning, l.Name, 1, "the limit holds nothing back: %s", l.Incomplete)
		}
		p, since, parts := l.Stalled(f.Now, f.Usual)
		if p == nil {
			continue
		}
		oldest, more := p.Used.Oldest, ""
		if parts > 1 {
			more = fmt.Sprintf("; parts of the limit that stall too: %d", parts-1)
		}
		add(LimitStalled, critical, l.Name, since.Seconds(), "%s, %s%s in use, and none has become free for %s: job %s of queue %s has held one for longest, %s%s", waitingJobs(int64(p.Waiting)),
			slots(int64(p.Used.Slots)), of(p.Group), span(since), oldest.JID, oldest.Queue, f.consumed(oldest.Queue), more)
	}
	if f.Freed > 0 {
		add(SlotsFreed, warning, "", float64(f.Freed), "%s freed in the last hour, because a queue had fewer messages than slots: its workers do not report the ends of jobs, or it was purged", wereFreed(f.Freed))
	}
}

// governed adds the governed queues that something is wrong with.
func (f *Facts) governed(add adder) {
	for _, q := range f.Governed {
		switch long := q.For > maxDraining; {
		case q.State == wire.QueueFull:
			add(Full, warning, q.Queue, q.For.Seconds(), "as many jobs wait as its max_waiting allows: for %s, more have been refused", span(q.For))
		case q.State == wire.QueueSuspended:
			add(Suspended, warning, q.Queue, q.For.Seconds(), "as many jobs wait as its max_waiting allows, but more are taken: the node of the queue jobs.full is away")
		case q.State == wire.QueueBypassed:
			add(Bypassed, warning, q.Queue, 1, "a client had bound the governed queue to jobs.direct: jobs came to it without limits; workers need not bind a queue")
		case q.State == wire.QueueDraining && long:
			add(Draining, warning, q.Queue, q.For.Seconds(), "no job has been delivered for %s: jobs from before the queue was governed are still in it", span(q.For))
		case (q.State == wire.QueueSwitching || q.State == wire.QueueLeaving) && long:
			add(Draining, warning, q.Queue, q.For.Seconds(), "the queue has been switching for %s: the log of the leader says why", span(q.For))
		}
	}
}

// unique adds the unique jobs about which no leader decides.
func (f *Facts) unique(add adder) {
	if u := f.Unique; u.Undecided > 0 && u.For > maxUndecided {
		add(Undecided, critical, "", u.For.Seconds(), "for %s, no leader has decided which unique jobs have their keys: %s", span(u.For), waitingJobs(u.Undecided))
	}
}

// consumed says whether workers consume a queue, as far as the broker says it.
func (f *Facts) consumed(queue string) string {
	for i := range f.Queues {
		switch q := &f.Queues[i]; {
		case q.Name != queue:
		case q.Consumers == 0:
			return "and no worker consumes the queue"
		default:
			return "and the queue has " + wire.Counted(q.Consumers, "consumer")
		}
	}
	if len(f.Queues) == 0 {
		return "and the broker does not say who consumes the queue"
	}
	return "and the queue does not exist"
}
