package attention

import (
	"cmp"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// units are what durations are written in, the largest first.
var units = []struct {
	name string
	is   time.Duration
}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}

// span returns a duration as the web UI shows them: in its largest unit and, up to ten of that,
// also in the next one.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	for i, u := range units[:len(units)-1] {
		if d < u.is {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.is, u.name)
		next := units[i+1]
		if rest := d % u.is / next.is; rest > 0 && d < 10*u.is {
			text += fmt.Sprintf(" %d %s", rest, next.name)
		}
		return text
	}
	return fmt.Sprintf("%d s", d/time.Second)
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

// hours is a time of up to a day in words.
func hours(d time.Duration) string {
	if d >= 23*time.Hour {
		return "day"
	}
	return wire.Counted(int64(d.Hours()), "hour")
}

func wereRunning(n int64) string {
	if n == 1 {
		return "1 job was"
	}
	return jobs(n) + " were"
}

func slotsBusy(n int64) string {
	if n == 1 {
		return "the only slot of its workers is busy"
	}
	return fmt.Sprintf("all %d slots of its workers are busy", n)
}

func jobs(n int64) string { return wire.Counted(n, "job") }

func waitingJobs(n int64) string {
	if n == 1 {
		return "1 job waits"
	}
	return jobs(n) + " wait"
}

// of names a part of the jobs.
func of(part wire.Group) string {
	if name := cmp.Or(part.Key, part.Queue, part.Class); name != "" {
		return " of " + wire.Shorten(name, 80)
	}
	return ""
}

func slots(n int64) string {
	if n == 1 {
		return "the only slot"
	}
	return fmt.Sprintf("all %d slots", n)
}

func wereFreed(n int64) string {
	if n == 1 {
		return "1 slot was"
	}
	return wire.Counted(n, "slot") + " were"
}

func missed(n int64) string {
	if n == 1 {
		return "1 tick was missed"
	}
	return wire.Counted(n, "tick") + " were missed"
}
