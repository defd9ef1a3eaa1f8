package chaos

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/sidecar"
)

// aim is the moment at which a leader is killed.
type aim int

const (
	aimFiring   aim = iota // while fires of it are unconfirmed
	aimSettling            // while it is catching up, or settling the fires of the leader before
)

// aims chooses a moment. Every fourth kill is to happen before the new leader fires, but not each
// does.
func (w *world) aims() aim {
	if w.aimedAt++; w.aimedAt%4 == 0 {
		return aimSettling
	}
	return aimFiring
}

// await waits for the moment. If it has passed, await waits for the other one.
func (w *world) await(p *sidecar.Process, a aim) {
	w.t.Helper()
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
		o, ok, err := p.Overview()
		if err != nil {
			w.t.Logf("%s: %v", p.Identity, err)
			return true
		}
		switch o.Scheduler.Phase {
		case "opening", "catching up", "settling":
			return ok && a == aimSettling
		case "leading":
			return ok && o.Scheduler.Unconfirmed > 0
		}
		return false
	}, "%s has unconfirmed fires", p.Identity)
	if a == aimFiring {
		w.pause(w.upTo(50 * time.Millisecond))
	}
}

// aimed checks that enough kills happened at the intended moments.
func (w *world) aimed() {
	w.t.Helper()
	w.must(2*w.unconfirmed >= w.faults, "%d of %d kills fell while fires were unconfirmed, that is too few to show anything", w.unconfirmed, w.faults)
	w.must(10*w.settling >= w.faults, "%d of %d kills fell while catching up or settling, that is too few to show anything", w.settling, w.faults)
}

// sidecarKilled kills the only sidecar again and again while entries fall due.
func sidecarKilled(w *world, jobs, kills int, stateDir bool) {
	s := w.slot("s", func(c *sidecar.Config) {
		if stateDir {
			c.StateDir = w.t.TempDir()
		}
	})
	p := w.run(s)
	brokertest.EventuallyWithin(w.t, time.Minute, p.Ready, "the sidecar is ready")
	w.warmUp()
	stop := w.command(10)
	for i := range kills {
		w.schedule(jobs*(i+1)/kills-w.row.jobs, time.Now().Add(100*time.Millisecond), time.Second)
		w.await(p, w.aims())
		w.kill(s)
		p = w.run(s)
	}
	w.awaitLeader()
	stop()
	w.exactlyOnce()
}

// newQueues kills the only sidecar each time while it fires the first jobs of a queue that no
// client has declared. At the end, it counts the jobs.
func newQueues(w *world, jobs, kills int) {
	s := w.slot("s", nil)
	p := w.run(s)
	brokertest.EventuallyWithin(w.t, time.Minute, p.Ready, "the sidecar is ready")
	w.queues = nil
	for i := range kills {
		queue := fmt.Sprintf("new%02d", i)
		w.queues = append(w.queues, queue)
		w.scheduleTo([]string{queue}, jobs*(i+1)/kills-w.row.jobs, time.Now(), 500*time.Millisecond)
		w.await(p, w.aims())
		w.kill(s)
		p = w.run(s)
	}
	w.awaitLeader()
	w.count()
	w.exactlyOnce()
}

// takeoverWithin is how soon another sidecar must fire after the leader was killed.
const takeoverWithin = 3 * time.Second

// standby kills the leader of two sidecars again and again, so that the other one takes over. Every
// third time it also kills that one while it settles.
func standby(w *world, jobs, kills int) {
	w.two()
	w.warmUp()
	stop := w.command(10)
	var longest time.Duration
	for w.faults < kills {
		for _, s := range w.slots {
			brokertest.EventuallyWithin(w.t, time.Minute, s.p.Ready, "%s is ready", s.name)
		}
		old := w.awaitLeader()
		other := w.slots[0]
		if other == old {
			other = w.slots[1]
		}
		w.schedule(max(0, min(jobs, jobs*(w.faults+1)/kills)-w.row.jobs), time.Now().Add(100*time.Millisecond), 4*time.Second)
		w.await(old.p, aimFiring)
		epoch, _ := w.counter.newest()
		w.kill(old)
		killed := time.Now()
		if w.faults%4 == 2 {
			w.await(other.p, aimSettling)
			w.kill(other)
			w.run(other)
		} else {
			longest = max(longest, w.taken(epoch, killed))
		}
		w.run(old)
	}
	w.awaitLeader()
	stop()
	w.note = "other fires within " + longest.Round(time.Millisecond).String()
	w.exactlyOnce()
	w.must(longest <= takeoverWithin, "it took %v until the other fired", longest)
}

// taken returns how long it takes until a job from a newer epoch arrives.
func (w *world) taken(epoch int64, since time.Time) time.Duration {
	w.t.Helper()
	var at time.Time
	brokertest.EventuallyWithin(w.t, time.Minute, func() bool {
		var newest int64
		newest, at = w.counter.newest()
		return newest > epoch
	}, "the other sidecar fires")
	return at.Sub(since)
}
