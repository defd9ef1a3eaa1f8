package scheduler

import (
	"maps"
	"strings"
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
	on       bool                       // fires come back
	waiting  map[dispatch]*unroutedFire // those that came back, and have no copy yet
	bytes    int                        // of these
	needNone map[dispatch]time.Duration // fires that have their copy or are pending again, since when; they may still come back
	clock    time.Duration              // how long the epoch has run
	looked   time.Duration              // when it was looked last what has no copy
	probes
}

// probes are those that go to jobs.gated. They come back to the leader too, behind the fires.
type probes struct {
	sent  int64         // the number of the newest
	at    time.Duration // when it was sent
	shown int64         // the newest one that the view had read when it was looked last
}

const (
	lookForCopies    = 500 * time.Millisecond
	copyPatience     = 5 * time.Second  // after which a probe is sent behind a copy that does not show
	gatedProbeLost   = 10 * time.Second // after which another one is
	forgetCopies     = 30 * time.Second // after which a probe shows which fires cannot come back any more
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

// off notes that fires come back no longer.
func (u *unrouted) off() {
	u.on = false
	clear(u.needNone)
}

// room reports whether more may be fired.
func (u *unrouted) room() bool { return len(u.waiting) < maxUnrouted && u.bytes < maxUnroutedBytes }

// cameBack takes in a fire that found no queue, or a probe.
func (u *unrouted) cameBack(m wire.Message) {
	if p, is := wire.ProbeOf(m.Headers); is {
		if p.Number == u.sent {
			maps.DeleteFunc(u.needNone, func(_ dispatch, since time.Duration) bool { return since < u.at })
		}
		return
	}
	d, ok := wire.DispatchOf(m.Headers)
	if number := dispatchOf(d); ok && !d.Burial() && u.waiting[number] == nil {
		if _, needsNone := u.needNone[number]; !needsNone {
			u.add(number, &unroutedFire{message: m, headers: d, since: u.clock})
		}
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
			u.needsNoCopy(dispatchOf(s.Burial))
		}
	}
	return nil
}

// needsNoCopy notes that a fire has its copy, or that its entry is pending again. The fire may not
// have come back yet.
func (u *unrouted) needsNoCopy(number dispatch) {
	if u.waiting[number] != nil {
		u.drop(number)
	}
	if u.on && number.number.Epoch == u.ledger.Epoch() {
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

// step looks for copies that are missing, from time to time.
func (u *unrouted) step(time.Time) error {
	if u.clock += u.ledger.Passed(); u.clock-u.looked < lookForCopies {
		return nil
	}
	shown := u.shown
	// The copies before a probe may come a step later than the probe, so it counts at the next
	// look.
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
	if u.mustProbe(len(unproven) > 0) {
		return u.sendProbe(unproven)
	}
	return nil
}

// mustProbe reports whether a probe is to be sent. some says that it would prove something.
func (u *unrouted) mustProbe(some bool) bool {
	if u.sent > u.shown && u.clock-u.at <= gatedProbeLost {
		return false // one is on its way
	}
	if some || u.sent > u.shown && len(u.waiting) > 0 {
		return true
	}
	return len(u.needNone) > 0 && u.clock-u.at > forgetCopies
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

// publishCopy publishes a copy again, to jobs.gated alone.
func (u *unrouted) publishCopy(f *unroutedFire) error {
	f.since, f.behind = u.clock, 0
	u.counters.CopiesLost++
	m := f.message
	body, err := wire.ForQueue(m.Body, m.Key)
	if err != nil {
		return err
	}
	m.Exchange, m.Key, m.Body, m.Headers = "", wire.Gated, body, maps.Clone(m.Headers)
	maps.DeleteFunc(m.Headers, func(name string, _ any) bool { // the broker may have added some
		return !strings.HasPrefix(name, wire.HeaderPrefix) && name != wire.HeaderTraceparent
	})
	return u.send(m)
}

// send publishes something to jobs.gated. If that has no answer or is refused, it is missed later.
func (u *unrouted) send(m wire.Message) error {
	return u.ledger.Send(&ledger.Publish{Plain: true, Elsewhere: true, Lost: func() {}, LostAfter: ledger.SilentAfter,
		Returned: func(time.Time, string, bool) error { return nil },
		Build:    func(int64, int64) wire.Message { return m }})
}

// sendProbe sends a probe to jobs.gated, behind the copies of fires that are confirmed.
func (u *unrouted) sendProbe(unproven []*unroutedFire) error {
	u.sent, u.at = u.sent+1, u.clock
	for _, f := range unproven {
		f.behind = u.sent
	}
	return u.send(wire.GatedProbe(u.ledger.Epoch(), u.sent))
}
