package scheduler

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// TestTwoLeaders drives two leaders that live at the same time: the lock has passed on, and the
// previous holder acts until its lease ends, it reads that another epoch has begun, or its
// connection ends. With leases, the node of the previous holder has no majority: what it sends may
// be lost, or arrive late. Without leases, as on a broker that gave its lock to two, both work on
// the same streams.
func TestTwoLeaders(t *testing.T) {
	tries(t, 300, 20)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		w.broker.leases = w.broker.cluster && rapid.Bool().Draw(t, "leases")
		t.Repeat(w.twoLeaders())
		w.endFollowed(t)
		w.quiesce()
		w.checkNothingIsTakenForLost()
		w.check()
	})
}

func (w *world) twoLeaders() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append":      w.append,
		"append2":     w.append,
		"read":        w.read,
		"read2":       w.read,
		"elect":       w.elect,
		"elect2":      w.elect,
		"lead":        w.lead,
		"lead2":       w.lead,
		"run":         w.run,
		"run2":        w.run,
		"command":     w.command,
		"repeat":      w.repeat,
		"change":      w.change,
		"undo":        w.undo,
		"operate":     w.operate,
		"enqueue":     w.enqueue,
		"pause":       w.pause,
		"periodic":    w.definePeriodic,
		"unique":      w.appendUnique,
		"unique2":     w.appendUnique,
		"ended":       w.endJob,
		"time":        w.pass,
		"disconnect":  w.disconnect,
		"killSidecar": w.killSidecar,
		"refuse":      w.refuse,
		"unroute":     w.unroute,
		"carry":       w.carry,
		"cutLink":     w.cutLink,
		"overlap":     w.overlap,
		"overlap2":    w.overlap,
		"overlap3":    w.overlap,
		"passLock":    w.passLock,
		"silence":     w.silence,
		"stall":       w.stall,
		"heal":        w.heal,
		"oldLead":     w.asFollowed(w.lead),
		"oldCommand":  w.asFollowed(w.command),
		"oldChange":   w.asFollowed(w.change),
		"oldUndo":     w.asFollowed(w.undo),
		"oldOperate":  w.asFollowed(w.operate),
		"oldEnqueue":  w.asFollowed(w.enqueue),
		"oldPause":    w.asFollowed(w.pause),
		"oldCarry":    w.asFollowed(w.carry),
		"oldEnds":     w.asFollowed(w.disconnect),
		"oldRun":      w.asFollowed(w.run),
		"lastWords":   w.lastWords,
		"passTwice":   w.passTwice,
	}
}

// passLock passes the lock on while its leader lives. With leases the leader's node has no majority
// any more, and the next leader waits until the lease has ended.
func (w *world) passLock(t *rapid.T) {
	s := w.leader()
	if s == nil || w.followed() != nil {
		return
	}
	if w.broker.leases {
		s.conn.cut, w.freeAt = true, w.now.Add(wire.LeaderWait)
	}
	w.broker.conn = nil
	if !w.broker.leases && rapid.Bool().Draw(t, "at once") {
		w.elect(t)
	}
}

// overlap has a leader lose the lock with jobs at hand, and both work side by side.
func (w *world) overlap(t *rapid.T) {
	w.elect(t)
	for range 6 {
		w.round()
	}
	old := w.leader()
	if old == nil || w.followed() != nil {
		return
	}
	w.append(t)
	w.append(t)
	require.NoError(t, old.readAll())
	w.passLock(t)
	if w.broker.leases {
		w.interleave(t, w.asFollowed(w.move), w.asFollowed(w.move), w.asFollowed(w.command), w.pass, w.elect, w.move, w.move)
		w.now = later(w.now, w.freeAt)
		w.elect(t)
	}
	w.interleave(t, w.move, w.move, w.asFollowed(w.move), w.asFollowed(w.move), w.pass, w.elect, w.heal)
}

// passTwice has a leader end and say so. The next one has the lock and has sent that it opens an
// epoch, when the lock passes on again.
func (w *world) passTwice(t *rapid.T) {
	s := w.leader()
	if s == nil || !w.broker.leases || w.followed() != nil || s.core.phase != phaseLeading {
		return
	}
	w.disconnect(t)
	s.sayLastWords(w.now)
	next := w.sidecars[0]
	if next == s {
		next = w.sidecars[1]
	}
	require.NoError(t, next.elect(w.refuses))
	w.step(next)
	w.passLock(t)
	require.NoError(t, s.elect(w.refuses))
	for range rapid.IntRange(0, 8).Draw(t, "rounds") {
		w.round()
	}
	w.heal(t)
	w.append(t)
	for range 3 {
		w.interleave(t, w.move, w.asFollowed(w.move), w.asFollowed(w.move))
	}
}

// interleave has some of several things happen.
func (w *world) interleave(t *rapid.T, may ...func(*rapid.T)) {
	for range rapid.IntRange(5, 25).Draw(t, "moves") {
		may[rapid.IntRange(0, len(may)-1).Draw(t, "which")](t)
	}
}

// followed returns the leader that has lost the lock and lives, if there is one.
func (w *world) followed() *modelSidecar {
	for _, s := range w.sidecars {
		if s.core != nil && s.conn != w.broker.conn {
			return s
		}
	}
	return nil
}

// asFollowed has something happen to the leader that lost the lock, if it may act.
func (w *world) asFollowed(do func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		if w.acting = w.followed(); w.acting != nil && w.acting.mayAct() {
			do(t)
		}
		w.acting = nil
	}
}

// heal gives the leaders' nodes their majority back, with what they held.
func (w *world) heal(*rapid.T) {
	for _, s := range w.sidecars {
		if s.conn != nil && s.conn.cut {
			s.conn.heal()
		}
	}
}

// stall takes the majority away from all nodes: what the leader sends is confirmed late, and no
// other leads.
func (w *world) stall(*rapid.T) {
	if s := w.leader(); s != nil && w.broker.cluster {
		s.conn.cut = true
	}
}

// endFollowed ends the connection of the leader that lost the lock.
func (w *world) endFollowed(t *rapid.T) { w.asAny(w.followed(), func() { w.disconnect(t) }) }

func (w *world) asAny(s *modelSidecar, do func()) {
	if w.acting = s; s != nil {
		do()
	}
	w.acting = nil
}

// lastWords has a leader that lost its connection journal its confirms.
func (w *world) lastWords(t *rapid.T) {
	if s := w.pick(t); s.core == nil {
		s.sayLastWords(w.now)
	}
}

// waitForLease lets the next sidecar lead: the previous leader is silent, or the journal says that
// it has ended, and what it sent has reached its node.
func (w *world) waitForLease(next *modelSidecar) bool {
	if s := w.followed(); s != nil && w.broker.leases {
		if w.now.Before(w.freeAt) && !next.hasEnded(w.t) {
			return false
		}
		for len(s.conn.out) > 0 && s.conn.cut {
			w.broker.process(s.conn, w.now)
		}
	}
	return true
}

// hasEnded reports whether the journal says that the leader of the newest epoch has ended.
func (s *modelSidecar) hasEnded(t *rapid.T) bool {
	for s.core == nil && s.behind(wire.Journal) {
		require.NoError(t, s.read(wire.Journal, 1<<30))
	}
	return s.core == nil && s.entries.State().Ended
}

// endsBy reports whether an error ends an epoch as it should.
func endsBy(err error) bool {
	return errors.Is(err, errMisrouted) || errors.Is(err, errIndeterminate) || errors.Is(err, errFenced)
}
