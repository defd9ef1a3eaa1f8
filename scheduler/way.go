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

// way is how far what is fired is known to reach its queue, and what is buried the dead jobs.
type way struct {
	base
	newestProbe
	fired   cargo         // what was sent since the newest probe
	before  cargo         // what was sent before it, since the last one that was followed
	unseen  time.Duration // since the last one that was followed
	burials []int64       // the numbers of burials that have not been seen among the dead jobs
	told    bool          // the journal is told that the way was broken
	routed  int64         // up to here, in the journal, all went well
	said    int64         // what of that the journal was told
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

// cargo is what was fired and buried.
type cargo struct {
	jobs  int
	bytes int
}

func (c cargo) plus(more cargo) cargo { return cargo{c.jobs + more.jobs, c.bytes + more.bytes} }

const (
	probeEach   = 512                    // fires
	probeEvery  = 500 * time.Millisecond // where there are fewer
	probeAlways = time.Minute            // where there are none
	followEach  = 8192                   // fires: after so many, a probe is followed by one to no queue
	followEvery = 5 * time.Second        // or after so long, where there are fewer
	wayDoubt    = 5 * time.Second        // after which it is asked for a probe that only the journal lacks
	wayPatience = 15 * time.Second       // how long a probe may take that the broker has confirmed: meanwhile what is fired is journaled
	wayLag      = 5 * time.Minute        // how much longer, at most, where the view is behind

	maxLostProbes = int(maxStuck / wayDoubt)

	maxUnproven      = 16384 // fires behind the last probe that arrived with the one that follows it
	maxUnprovenBytes = 128 << 20
)

// errAstray ends an epoch: what is fired may reach no queue. Who leads next looks again, and mends it.
var errAstray = errors.New("scheduler: what is fired does not reach its queue: somebody deleted an exchange of Millrace's, or a binding")

func (w *way) sent(seq int64, bytes int, buries bool) {
	w.fired.jobs++
	w.fired.bytes += bytes
	if buries {
		w.burials = append(w.burials, seq)
	}
}

// cameBack notes that a fire or burial did not arrive, as the journal knows.
func (w *way) cameBack(seq int64) {
	w.burials = slices.DeleteFunc(w.burials, func(n int64) bool { return n == seq })
}

func (w *way) room() bool {
	return w.fired.jobs+w.before.jobs < maxUnproven && w.fired.bytes+w.before.bytes < maxUnprovenBytes
}

// step looks whether the newest probe has arrived, and sends the next when it is time.
func (w *way) step(now time.Time) (wake time.Time, err error) {
	wake = now.Add(maxSleep)
	w.since += w.ledger.Passed()
	w.unseen += w.ledger.Passed()
	if w.lost > maxLostProbes {
		return now, fmt.Errorf("%w: %d probes were neither confirmed nor refused", errResigned, w.lost)
	}
	if w.out {
		if arrived := w.probeArrived(); !arrived && w.taken {
			if err := w.watchLate(now); err != nil {
				return now, err
			}
		}
	}
	if !w.out && w.isTime() {
		return wake, w.sendProbe()
	}
	if !w.out && w.fired.jobs > 0 {
		wake = now.Add(max(0, probeEvery-w.since))
	}
	return wake, nil
}

// watchLate tells a probe that is late from one that is lost. Where it came out at the end of the way the journal may lack it, or the view be
// behind: which of them, a record tells that goes straight to the journal after it. There it is urgent: what is fired now is not journaled.
func (w *way) watchLate(now time.Time) error {
	if lacking := w.back && w.entries.Probed().Number < w.probe; !lacking {
		if late := w.setup.patience() + w.took; w.since > late {
			return fmt.Errorf("%w: probe %d did not come out within %v; a burial is missing: %v", errAstray, w.probe, late, w.back)
		}
		return nil
	}
	if w.asked == 0 {
		return w.askForProbe(now)
	}
	if _, folded := w.entries.Progress(); folded >= w.asked {
		return fmt.Errorf("%w: the journal has no probe %d", errAstray, w.probe)
	}
	return nil
}

// askForProbe sends the record behind the probe, once it is late.
func (w *way) askForProbe(now time.Time) error {
	if w.since <= wayDoubt {
		return nil
	}
	err := w.ledger.Mark(now)
	w.asked = w.ledger.Seq()
	return err
}

func (w *way) isTime() bool {
	return w.lost > 0 || w.fired.jobs >= probeEach || w.since >= probeAlways || w.since >= probeEvery && w.fired.jobs > 0 || w.mustFollow(w.before)
}

// mustFollow reports whether the next probe is to be followed by one to no queue, with so much fired since the last that was.
func (w *way) mustFollow(since cargo) bool {
	return since.jobs >= followEach || since.jobs > 0 && w.unseen >= followEvery
}

func (w *way) sendProbe() error {
	w.probe, w.out, w.taken, w.back, w.since, w.asked, w.said = w.probe+1, true, false, false, 0, 0, w.routed
	w.before, w.fired, w.behind = w.before.plus(w.fired), cargo{}, w.ledger.Seq()
	if w.follow = w.mustFollow(w.before); w.follow {
		w.unseen = 0
		w.setup.follow(w.probe)
	}
	number := w.probe
	taken := func() {
		if w.lost = 0; number == w.probe {
			w.taken, w.took, w.since = true, w.since, 0 // a broker that is slow to confirm has lost nothing
		}
	}
	lost := func() {
		if number == w.probe {
			w.out, w.lost = false, w.lost+1
		}
	}
	return w.ledger.Send(&ledger.Publish{Plain: true, Confirmed: taken, Lost: lost, LostAfter: wayDoubt, Build: func(_, confirmed int64) wire.Message {
		return wire.Probe{Epoch: w.ledger.Epoch(), Number: w.probe, Confirmed: confirmed, Routed: w.routed}.To(w.setup.probed)
	}})
}

// probeArrived tells whether all that was sent before the newest probe arrived.
func (w *way) probeArrived() bool {
	p := w.entries.Probed()
	seen := 0
	for seen < len(w.burials) && w.burials[seen] <= p.Buried {
		seen++
	}
	w.burials = w.burials[seen:]
	if !w.back || p.Number != w.probe || len(w.burials) > 0 && w.burials[0] <= w.behind {
		return false
	}
	w.out, w.lost = false, 0
	if w.follow || w.before.jobs == 0 {
		w.before, w.routed = cargo{}, p.Offset
	}
	return true
}

// proven is called when a probe came out at the end of the way, and the broker has kept the one that follows it, if any.
func (w *way) proven(number int64) {
	if number == w.probe {
		w.back = true
	}
}

// unsaid tells whether the journal does not know yet how far all went well.
func (w *way) unsaid() bool { return w.routed > w.said }

// say is what the journal is told of that.
func (w *way) say() *int64 {
	w.said = w.routed
	routed := w.routed
	return &routed
}

// foundAstray journals that the way was broken, once. It is to be mended when the view has read that.
func (w *way) foundAstray(now time.Time) error {
	if w.told {
		return nil
	}
	w.told = true
	return w.ledger.Record(now, wire.JournalRecord{Type: wire.TypeAstray}, spot{})
}

// mayMend tells whether the journal has it that the way was broken.
func (w *way) mayMend() bool { return w.told && w.entries.State().AstrayAt > w.ledger.Epoch() }

// nothingFired tells whether there was no leader before this one: then the way was never made.
func (w *way) nothingFired() bool {
	s := w.entries.State()
	return s.Fired == 0 && s.Buried == 0 && !s.Lost && s.RoutedTo < 0
}

// stands is told that the way leads from jobs.fire to the queues. The first probe follows as soon as what earlier leaders left is settled.
func (w *way) stands() {
	w.since = probeAlways
	w.routed, w.said = w.entries.State().RoutedTo, w.entries.State().RoutedTo
}
