package scheduler

import (
	"maps"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A fire that finds no queue becomes an entry of jobs.gated, its copy. RabbitMQ 3.10 may confirm
// the copy and then lose it, if the node stops that leads the stream. Such a node may be the home
// of the queue too, and then it is why the fire found none.
//
// So each fire that finds no queue also comes straight back to its leader. If the copy does not
// show, the leader publishes it again. It knows that the view has read far enough when a probe
// shows that it sent to jobs.gated after the broker had confirmed the fire.

// unrouted makes sure that each fire that found no queue has its copy.
type unrouted struct {
	base
	waiting  map[dispatch]*unroutedFire // those that came back, and have no copy yet
	bytes    int                        // of these
	needNone map[dispatch]time.Duration // fires that have their copy or are pending again, and since when
	clock    time.Duration              // how long the epoch has run
	looked   time.Duration              // when it was looked last what has no copy
	probe    int64                      // the number of the newest probe to jobs.gated
	probedAt time.Duration              // when it was sent
	shown    int64                      // the newest one that the view had read when it was looked last
}

// unroutedFire is a fire that came back.
type unroutedFire struct {
	message wire.Message
	headers wire.Dispatch
	since   time.Duration // when it came back, or its copy was published again
	behind  int64         // the number of a probe that was sent after the fire was confirmed, 0 if none
}

const (
	lookForCopies    = 500 * time.Millisecond
	copyPatience     = 5 * time.Second  // after which a probe is sent behind a copy that does not show
	gatedProbeLost   = 10 * time.Second // after which another one is
	comesBackWithin  = 30 * time.Second // after what else happens to a fire
	maxUnrouted      = 4096
	maxUnroutedBytes = 64 << 20
)

// newUnrouted continues with what the last epoch of the same claim has left.
func newUnrouted(b base, left map[dispatch]*unroutedFire) unrouted {
	u := unrouted{base: b, waiting: map[dispatch]*unroutedFire{}, needNone: map[dispatch]time.Duration{}}
	for number, f := range left {
		u.add(number, &unroutedFire{message: f.message, headers: f.headers})
	}
	return u
}

// open drops the fires that the journal lacks, before anything is fired: their entries are pending.
func (u *unrouted) open() error {
	for number, f := range u.waiting {
		o, err := u.original(f.headers)
		if err != nil {
			return err
		}
		if o == originalPending {
			u.drop(number)
		}
	}
	return nil
}

// room reports whether more may be fired.
func (u *unrouted) room() bool { return len(u.waiting) < maxUnrouted && u.bytes < maxUnroutedBytes }

// cameBack takes in a fire that found no queue.
func (u *unrouted) cameBack(m wire.Message) {
	d, ok := wire.DispatchOf(m.Headers)
	if !ok || d.Burial() {
		return
	}
	number := numberOf(d)
	_, again := u.waiting[number] // its copy was published again
	_, needsNone := u.needNone[number]
	if delete(u.needNone, number); !again && !needsNone {
		u.add(number, &unroutedFire{message: m, headers: d, since: u.clock})
	}
}

// copied takes in the offsets of copies that the view has read.
func (u *unrouted) copied(offsets []int64) error {
	for _, offset := range offsets {
		s, err := u.entries.Get(wire.Gated, offset)
		if err != nil {
			return err
		}
		if s != nil && s.Burial.Seq > 0 {
			u.needsNoCopy(dispatchOf(s))
		}
	}
	return nil
}

// needsNoCopy notes that a fire has its copy, or that its entry is pending again. The fire may not
// have come back yet.
func (u *unrouted) needsNoCopy(number dispatch) {
	if u.waiting[number] != nil {
		u.drop(number)
	} else if number.number.Epoch == u.ledger.Epoch() {
		u.needNone[number] = u.clock
	}
}

func (u *unrouted) add(number dispatch, f *unroutedFire) {
	u.waiting[number] = f
	u.bytes += len(f.message.Body)
}

func (u *unrouted) drop(number dispatch) {
	u.bytes -= len(u.waiting[number].message.Body)
	delete(u.waiting, number)
}

func numberOf(d wire.Dispatch) dispatch {
	return dispatch{wire.Through{Epoch: d.Epoch, Through: d.Seq}, d.JIDTag}
}

// step looks for copies that are missing, from time to time.
func (u *unrouted) step(time.Time) error {
	if u.clock += u.ledger.Passed(); u.clock-u.looked < lookForCopies {
		return nil
	}
	maps.DeleteFunc(u.needNone, func(_ dispatch, since time.Duration) bool { return u.clock-since > comesBackWithin })
	shown := u.shown
	// The copies before a probe may come a step later than the probe, so it counts at the next look.
	u.looked, u.shown = u.clock, u.entries.GatedProbe(u.ledger.Epoch())
	var unproven []*unroutedFire
	for _, f := range u.waiting {
		behind, err := u.look(f, shown)
		if err != nil {
			return err
		}
		if behind {
			unproven = append(unproven, f)
		}
	}
	out := u.probe > u.shown
	if !out && len(unproven) > 0 || out && len(u.waiting) > 0 && u.clock-u.probedAt > gatedProbeLost {
		return u.sendProbe(unproven)
	}
	return nil
}

// look does what is due about one fire, and reports whether a probe must be sent behind its copy.
func (u *unrouted) look(f *unroutedFire, shown int64) (unproven bool, err error) {
	switch {
	case u.clock-f.since < copyPatience, f.behind > shown:
		return false, nil
	case f.behind > 0:
		return false, u.publishCopy(f)
	}
	o, err := u.original(f.headers)
	return err == nil && o == originalGone, err
}

// publishCopy publishes a copy again. It goes the way that it went before.
func (u *unrouted) publishCopy(f *unroutedFire) error {
	f.since, f.behind = u.clock, 0
	u.counters.CopiesLost++
	m := f.message
	m.Exchange, m.Headers = wire.Unrouted, maps.Clone(m.Headers)
	return u.ledger.Send(&ledger.Publish{Plain: true, Build: func(int64, int64) wire.Message { return m }})
}

// sendProbe sends a probe to jobs.gated, behind the copies of fires that are confirmed.
func (u *unrouted) sendProbe(unproven []*unroutedFire) error {
	u.probe, u.probedAt = u.probe+1, u.clock
	for _, f := range unproven {
		f.behind = u.probe
	}
	return u.ledger.Send(&ledger.Publish{Plain: true, Build: func(int64, int64) wire.Message {
		return wire.GatedProbe(u.ledger.Epoch(), u.probe)
	}})
}
