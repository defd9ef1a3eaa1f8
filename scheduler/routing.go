package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A confirm says that the broker took a fire to wherever jobs.fire leads; and somebody may have unbound or deleted what leads from there to
// the queues. So the leader sends probes the same way, and journals up to where everything fired before them went well. Only who holds the
// lock mends the way, before it fires anything and after it has journaled that it was broken: so a probe that arrives says that the way
// stood since the one before it, and what was fired between the last that arrived and the mending is fired again.

// routing is how far what is fired is known to reach its queue, and what is buried the dead jobs.
type routing struct {
	base
	newestProbe
	fired     load          // what was sent since the newest probe
	before    load          // what was sent before it, since the last one that was followed
	unseen    time.Duration // since the last one that was followed
	burials   []int64       // the numbers of burials that have not been seen among the dead jobs
	journaled bool          // the journal is told that the way was broken
	routed    int64         // up to here, in the journal, all went well
	announced int64         // what of that the journal was told
}

// newestProbe is how far the newest probe is.
type newestProbe struct {
	probe  int64         // its number
	out    bool          // it is on its way
	lost   int           // how many before it, in a row, had no answer in time
	taken  bool          // the broker has confirmed it
	took   time.Duration // how long that took: what follows it must be confirmed too
	back   bool          // it has arrived; its record may not be folded yet
	since  time.Duration // it was sent, or confirmed
	asked  int64         // the number of a record behind it that says whether the journal has it
	behind int64         // the newest burial that was sent before it
	follow bool          // it is followed by one to no queue, which becomes a record of jobs.gated
}

// load is what was fired and buried.
type load struct {
	jobs  int
	bytes int
}

func (c load) plus(more load) load { return load{c.jobs + more.jobs, c.bytes + more.bytes} }

const (
	probeEach     = 512                    // fires
	probeEvery    = 500 * time.Millisecond // where there are fewer
	probeAlways   = time.Minute            // where there are none
	followEach    = 8192                   // fires: after so many, a probe is followed by one to no queue
	followEvery   = 5 * time.Second        // or after so long, where there are fewer
	markAfter     = 5 * time.Second        // after which it is asked for a probe that only the journal lacks
	probePatience = 15 * time.Second       // how long a probe may take that the broker has confirmed: meanwhile what is fired is journaled
	probeLag      = 5 * time.Minute        // how much longer, at most, where the view is behind

	maxLostProbes = int(maxStuck / markAfter)

	maxUnproven      = 16384 // fires behind the last probe that arrived with the one that follows it
	maxUnprovenBytes = 128 << 20
)

// errMisrouted ends an epoch: what is fired may reach no queue. Who leads next looks again, and mends it.
var errMisrouted = errors.New("scheduler: what is fired does not reach its queue: somebody deleted an exchange of Millrace's, or a binding")

func (r *routing) sent(seq int64, bytes int, buries bool) {
	r.fired.jobs++
	r.fired.bytes += bytes
	if buries {
		r.burials = append(r.burials, seq)
	}
}

// returned notes that a fire or burial did not arrive, as the journal knows.
func (r *routing) returned(seq int64) {
	r.burials = slices.DeleteFunc(r.burials, func(n int64) bool { return n == seq })
}

func (r *routing) room() bool {
	return r.fired.jobs+r.before.jobs < maxUnproven && r.fired.bytes+r.before.bytes < maxUnprovenBytes
}

// step looks whether the newest probe has arrived, and sends the next when it is time.
func (r *routing) step(now time.Time) (wake time.Time, err error) {
	wake = now.Add(maxSleep)
	r.since += r.ledger.Passed()
	r.unseen += r.ledger.Passed()
	if r.lost > maxLostProbes {
		return now, fmt.Errorf("%w: %d probes were neither confirmed nor refused", errResigned, r.lost)
	}
	if r.out {
		if arrived := r.probeArrived(); !arrived && r.taken {
			if err := r.checkLate(now); err != nil {
				return now, err
			}
		}
	}
	if !r.out && r.isTime() {
		return wake, r.sendProbe()
	}
	if !r.out && r.fired.jobs > 0 {
		wake = now.Add(max(0, probeEvery-r.since))
	}
	return wake, nil
}

// checkLate tells a probe that is late from one that is lost. Where it came out at the end of the way the journal may lack it, or the view be
// behind: which of them, a record tells that goes straight to the journal after it. There it is urgent: what is fired now is not journaled.
func (r *routing) checkLate(now time.Time) error {
	if lacking := r.back && r.entries.Probed().Number < r.probe; !lacking {
		if late := r.setup.probeTimeout() + r.took; r.since > late {
			return fmt.Errorf("%w: probe %d did not come out within %v; a burial is missing: %v", errMisrouted, r.probe, late, r.back)
		}
		return nil
	}
	if r.asked == 0 {
		return r.markBehindProbe(now)
	}
	if _, folded := r.entries.Progress(); folded >= r.asked {
		return fmt.Errorf("%w: the journal has no probe %d", errMisrouted, r.probe)
	}
	return nil
}

// markBehindProbe sends the record behind the probe, once it is late.
func (r *routing) markBehindProbe(now time.Time) error {
	if r.since <= markAfter {
		return nil
	}
	err := r.ledger.Mark(now)
	r.asked = r.ledger.Seq()
	return err
}

func (r *routing) isTime() bool {
	return r.lost > 0 || r.fired.jobs >= probeEach || r.since >= probeAlways || r.since >= probeEvery && r.fired.jobs > 0 || r.mustFollow(r.before)
}

// mustFollow reports whether the next probe is to be followed by one to no queue, with so much fired since the last that was.
func (r *routing) mustFollow(since load) bool {
	return since.jobs >= followEach || since.jobs > 0 && r.unseen >= followEvery
}

func (r *routing) sendProbe() error {
	r.probe, r.out, r.taken, r.back, r.since, r.asked, r.announced = r.probe+1, true, false, false, 0, 0, r.routed
	r.before, r.fired, r.behind = r.before.plus(r.fired), load{}, r.ledger.Seq()
	if r.follow = r.mustFollow(r.before); r.follow {
		r.unseen = 0
		r.setup.follow(r.probe)
	}
	number := r.probe
	taken := func() {
		if r.lost = 0; number == r.probe {
			r.taken, r.took, r.since = true, r.since, 0 // a broker that is slow to confirm has lost nothing
		}
	}
	lost := func() {
		if number == r.probe {
			r.out, r.lost = false, r.lost+1
		}
	}
	return r.ledger.Send(&ledger.Publish{Plain: true, Confirmed: taken, Lost: lost, LostAfter: markAfter, Build: func(_, confirmed int64) wire.Message {
		return wire.Probe{Epoch: r.ledger.Epoch(), Number: r.probe, Confirmed: confirmed, Routed: r.routed}.To(r.setup.probeQueue)
	}})
}

// probeArrived tells whether all that was sent before the newest probe arrived.
func (r *routing) probeArrived() bool {
	p := r.entries.Probed()
	seen := 0
	for seen < len(r.burials) && r.burials[seen] <= p.Buried {
		seen++
	}
	r.burials = r.burials[seen:]
	if !r.back || p.Number != r.probe || len(r.burials) > 0 && r.burials[0] <= r.behind {
		return false
	}
	r.out, r.lost = false, 0
	if r.follow || r.before.jobs == 0 {
		r.before, r.routed = load{}, p.Offset
	}
	return true
}

// arrived is called when a probe came out at the end of the way, and the broker has kept the one that follows it, if any.
func (r *routing) arrived(number int64) {
	if number == r.probe {
		r.back = true
	}
}

// hasNews tells whether the journal does not know yet how far all went well.
func (r *routing) hasNews() bool { return r.routed > r.announced }

// news is what the journal is told of that.
func (r *routing) news() *int64 {
	r.announced = r.routed
	routed := r.routed
	return &routed
}

// journalBroken journals that the way was broken, once. It is to be mended when the view has read that.
func (r *routing) journalBroken(now time.Time) error {
	if r.journaled {
		return nil
	}
	r.journaled = true
	return r.ledger.Record(now, wire.JournalRecord{Type: wire.TypeAstray}, ledger.EntryID{})
}

// mayRepair tells whether the journal has it that the way was broken.
func (r *routing) mayRepair() bool {
	return r.journaled && r.entries.State().AstrayAt > r.ledger.Epoch()
}

// nothingFired tells whether there was no leader before this one: then the way was never made.
func (r *routing) nothingFired() bool {
	s := r.entries.State()
	return s.Fired == 0 && s.Buried == 0 && !s.Lost && s.RoutedTo < 0
}

// intact is told that the way leads from jobs.fire to the queues. The first probe follows as soon as what earlier leaders left is settled.
func (r *routing) intact() {
	r.since = probeAlways
	r.routed, r.announced = r.entries.State().RoutedTo, r.entries.State().RoutedTo
}
