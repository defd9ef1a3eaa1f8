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
	TooOld      = "oldest_too_old"
	Lost        = "process_lost"
	RetryStorm  = "retry_storm"
	DeadGrowth  = "dead_growth"
	Growing     = "queue_growing"
	Paused      = "queue_paused"
	VersionSkew = "version_skew"
)

// Limits beyond which something is worth a look.
const (
	maxLag     = 5 * time.Second
	maxOverdue = time.Minute
	stormRate  = 1.0 // failures a second, and
	stormTimes = 3.0 // as many times as before
	// leastBefore is how much must be known of the time before. On a sidecar's first hours there is nothing to compare with.
	leastBefore = 2 * time.Hour
	growsFor    = 5 * time.Minute
)

// Facts are what is known.
type Facts struct {
	Queues    []queues.Queue
	Alarms    []string
	NoLeader  string // why no sidecar can lead, and what to do about it; empty if one can
	Processes []processes.Process
	Lag       time.Duration // of the view
	Overdue   time.Duration // of the oldest entry that should have fired
	SLO       func(queue string) time.Duration
	Paused    map[string]wire.Pause
	Degraded  []Failing

	Failed       float64       // failures per second in the last minutes
	FailedBefore float64       // and on average before that
	Before       time.Duration // over which time that average is: up to a day
	Died         int64         // jobs that died in the last quarter of an hour
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
	Kind     string  `json:"kind"`
	Severity string  `json:"severity"`          // critical or warning
	Subject  string  `json:"subject,omitempty"` // a queue, process, tag or the broker's words
	Text     string  `json:"text"`
	Value    float64 `json:"value"` // what the kind is about: messages, seconds, jobs a second
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
		add(Alarm, critical, a, 1, "the broker takes no messages: %s", a)
	}
	if f.NoLeader != "" {
		add(NoLeader, critical, "", 1, "no sidecar leads, no jobs are dispatched: %s", f.NoLeader)
	}
	if f.Lag > maxLag {
		add(Lag, warning, "", f.Lag.Seconds(), "the data shown are %s old", round(f.Lag))
	}
	if f.Overdue > maxOverdue {
		add(Overdue, critical, "", f.Overdue.Seconds(), "the oldest due job is %s late", round(f.Overdue))
	}
	for _, d := range f.Degraded {
		add(Degraded, warning, d.Subject, d.For.Seconds(), "%s%s: %s", d.Costs, onNode(d.Node), d.Problem)
	}
	for i := range f.Queues {
		f.queue(&f.Queues[i], add)
	}
	f.workers(add)
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

// down are the states of a queue that the broker cannot serve. What is published to one may be dropped and confirmed all the same.
var down = []string{"down", "crashed", "stopped", "terminated", "minority", "closed"}

func (f *Facts) queue(q *queues.Queue, add adder) {
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
	if f.SLO != nil {
		if slo := f.SLO(q.Name); slo > 0 && q.Oldest > slo {
			add(TooOld, critical, q.Name, q.Oldest.Seconds(), "the oldest job has waited %s%s; the limit is %s", atLeast(q), round(q.Oldest), slo)
		}
	}
	if q.Growth > 0 && q.Growth*growsFor.Seconds() > max(100, float64(q.Ready)/10) {
		add(Growing, warning, q.Name, q.Growth, "it grows by %.1f jobs/s, %s", q.Growth, waiting(q))
	}
}

func wereRunning(n int64) string {
	if n == 1 {
		return "1 job was"
	}
	return jobs(n) + " were"
}

func jobs(n int64) string { return wire.Counted(n, "job") }

func waiting(q *queues.Queue) string {
	if q.Ready == 1 {
		return "1 job waits"
	}
	return jobs(q.Ready) + " wait"
}

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
			add(Lost, warning, p.Identity, p.Silent.Seconds(), "no heartbeat for %s; %s running", round(p.Silent), wereRunning(p.Busy))
		}
	}
	for tag, versions := range processes.Skews(f.Processes) {
		add(VersionSkew, warning, tag, float64(len(versions)), "several versions run: %s", strings.Join(versions, ", "))
	}
}

// hours is a time of up to a day in words.
func hours(d time.Duration) string {
	if d >= 23*time.Hour {
		return "day"
	}
	return wire.Counted(int64(d.Hours()), "hour")
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

func grave(i Item) int {
	if i.Severity == critical {
		return 0
	}
	return 1
}

// home says on which node a queue is.
func home(node string) string {
	if node == "" {
		return ""
	}
	return ", on node " + node
}

func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " while node " + node + " is away"
}

var kinds = []string{Alarm, NoLeader, Lag, Overdue, Degraded, Down, NoConsumer, TooOld, Lost, RetryStorm, DeadGrowth, Growing, Paused, VersionSkew}

func order(i Item) int { return slices.Index(kinds, i.Kind) }
