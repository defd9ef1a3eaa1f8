package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A confirm says that the broker took a fire to wherever jobs.fire leads. A client may have deleted
// the exchanges or bindings between jobs.fire and the queues. So the leader sends probes the same
// way, and journals up to where everything before them arrived.
//
// Only the holder of the lock repairs the routing, before it fires anything and after it journaled
// that the routing was broken. So a probe that arrives proves that the routing has been intact
// since the probe before it. What was fired between the last probe that arrived and the repair is
// fired again.

// routing checks that fires reach their queues, and burials the dead jobs.
type routing struct {
	base
	newestProbe
	fired     load          // what was sent since the newest probe
	before    load          // what was sent before it, since the last probe that was followed
	unseen    time.Duration // since the last probe that was followed
	burials   []int64       // the numbers of burials that the view has not read in dead_jobs
	journaled bool          // that the routing was broken
	routed    int64         // everything in the journal up to here arrived
	announced int64         // how much of that is journaled
}

// newestProbe is the state of the newest probe. A probe that is followed has an unroutable one sent
// after it, which becomes a record of jobs.gated.
type newestProbe struct {
	probe  int64         // its number
	out    bool          // it is on its way
	lost   int           // how many probes before it, in a row, had no answer in time
	taken  bool          // the broker has confirmed it
	took   time.Duration // how long that took: what follows it must be confirmed too
	back   bool          // it has arrived; the view may not have read its record yet
	since  time.Duration // the time since it was sent, or confirmed
	asked  int64         // the number of a record behind it, which shows whether the journal has it
	behind int64         // the newest number that was sent before it
	follow bool          // it is followed
}

// load is how much was fired and buried.
type load struct {
	jobs  int
	bytes int
}

func (c load) plus(more load) load { return load{c.jobs + more.jobs, c.bytes + more.bytes} }

const (
	probeEach     = 512                    // fires
	probeEvery    = 500 * time.Millisecond // with fewer fires
	probeAlways   = time.Minute            // without fires
	followEach    = 8192                   // after so many fires, a probe is followed
	followEvery   = 5 * time.Second        // with fewer fires
	markAfter     = 5 * time.Second        // after which a record is sent behind a late probe
	probePatience = 15 * time.Second       // how long a confirmed probe may take to arrive
	probeLag      = 5 * time.Minute        // how much longer at most, if the view lags

	maxLostProbes = int(maxStuck / markAfter)

	maxUnproven      = 16384 // how many fires may be behind the last followed probe that arrived
	maxUnprovenBytes = 128 << 20
)

// errMisrouted ends an epoch: fires may reach no queue. The next leader checks that again, and
// repairs it.
var errMisrouted = errors.New("scheduler: delivered jobs do not reach their queue: an exchange of Millrace, or a binding, was deleted")

func (r *routing) sent(seq int64, bytes int, buries bool) {
	r.fired.jobs++
	r.fired.bytes += bytes
	if buries {
		r.burials = append(r.burials, seq)
	}
}

// returned notes that a fire or burial did not arrive, which the journal knows.
func (r *routing) returned(seq int64) {
	r.burials = slices.DeleteFunc(r.burials, func(n int64) bool { return n == seq })
}

// room reports whether more may be fired before a probe arrives.
func (r *routing) room() bool {
	return r.fired.jobs+r.before.jobs < maxUnproven && r.fired.bytes+r.before.bytes < maxUnprovenBytes
}

// step checks whether the newest probe has arrived, and sends the next one when it is due.
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

// checkLate returns errMisrouted if a confirmed probe is lost. If it arrived and its record is
// missing, either the journal lacks it or the view lags. A record behind it, sent to the journal
// alone, shows which. A journal that lacks probes lacks fires too.
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

// markBehindProbe sends that record once the probe is late.
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

// mustFollow reports whether the next probe is to be followed, with so much fired since the last
// one that was.
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
			r.taken, r.took, r.since = true, r.since, 0 // slow confirms lose nothing
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

// probeArrived reports whether everything that was sent before the newest probe arrived.
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

// arrived notes that a probe arrived, and that the broker kept the one that followed it, if any.
func (r *routing) arrived(number int64) {
	if number == r.probe {
		r.back = true
	}
}

// hasNews reports whether the journal does not know yet how far everything arrived.
func (r *routing) hasNews() bool { return r.routed > r.announced }

// news returns that, for a record.
func (r *routing) news() *int64 {
	r.announced = r.routed
	routed := r.routed
	return &routed
}

// journalBroken journals, once, that the routing was broken. It may be repaired when the view has
// read that.
func (r *routing) journalBroken(now time.Time) error {
	if r.journaled {
		return nil
	}
	r.journaled = true
	return r.ledger.Record(now, wire.JournalRecord{Type: wire.TypeMisrouted}, ledger.EntryID{})
}

// mayRepair reports whether the journal has it that the routing was broken.
func (r *routing) mayRepair() bool {
	return r.journaled && r.entries.State().MisroutedAt > r.ledger.Epoch()
}

// nothingFired reports whether no leader has fired anything. Then the exchanges were never
// declared.
func (r *routing) nothingFired() bool {
	s := r.entries.State()
	return s.Fired == 0 && s.Buried == 0 && !s.Lost && s.RoutedTo < 0
}

// intact notes that jobs.fire leads to the queues. The first probe comes as soon as the epoch
// leads. The first one behind a fire is followed: the next leader reads the journal again from
// there, and this epoch may be short.
func (r *routing) intact() {
	r.since, r.unseen = probeAlways, followEvery
	r.routed, r.announced = r.entries.State().RoutedTo, r.entries.State().RoutedTo
}
