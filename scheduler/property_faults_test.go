package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// beginLate has the next leader know the past only from low water, while fires of the previous
// leader are in doubt.
func (w *world) beginLate(t *rapid.T) {
	w.carry(t)
	for range 20 {
		w.now = w.now.Add(lingers / 10)
		w.round()
	}
	w.retention(t)
	w.append(t)
	w.lead(t)
	for _, s := range w.sidecars {
		w.forgetOne(t, s)
	}
	w.elect(t)
}

// overtake has a command concern an entry that a lane has already looked up, and that is due before
// the command is answered.
func (w *world) overtake(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	for range 3 {
		w.round()
	}
	jids := w.jids
	w.append(t)
	w.round()
	for _, p := range w.places() {
		if e := w.appended[p]; s == w.leader() && !e.dead && strings.Contains(e.raw, fmt.Sprintf("[%d]", jids+1)) {
			w.commandOn(t, s, p)
			for s.conn != nil && len(s.conn.out) > 0 {
				w.broker.process(s.conn, w.now)
			}
			if rapid.Bool().Draw(t, "answered") && len(s.conn.answers) > 0 {
				w.answer(s)
			}
			require.NoError(t, s.readAll())
			w.now = w.now.Add(6 * time.Second)
			if s == w.leader() {
				w.step(s)
			}
		}
	}
}

// setClock sets the wall clock, forward or back.
func (w *world) setClock(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
		w.latest = later(w.latest, w.now)
		w.now = w.now.Add(time.Duration(rapid.IntRange(-60, 60).Draw(t, "minutes")) * time.Minute)
	}
}

func (w *world) refuseRecords(t *rapid.T) { w.broker.deaf = rapid.IntRange(1, 3).Draw(t, "records") }

// carryRefused has a stream refuse an entry that is carried over, and the leader die before it can
// repeat it. Low water must not be above it.
func (w *world) carryRefused(t *rapid.T) {
	for range 3 {
		w.round()
	}
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	w.append(t)
	require.NoError(t, s.readAll())
	require.NoError(t, s.core.beginCarry(0))
	w.broker.deaf = 1
	w.step(s)
	for s.conn != nil && len(s.conn.out) > 0 {
		w.broker.process(s.conn, w.now)
	}
	require.NoError(t, s.readAll())
	w.retention(t)
	if s == w.leader() {
		w.dieInFlight(t, s)
		s.disconnect()
	}
}

// takeoverRefused has the broker die, and the journal refuse the first record of the next leader.
// That leader dies before it can repeat it.
func (w *world) takeoverRefused(t *rapid.T) {
	w.killBroker(t)
	w.append(t)
	s := w.pick(t)
	if w.leader() != nil || len(s.recreated()) > 0 {
		return
	}
	require.NoError(t, s.elect(w.refuses))
	for range 12 {
		if s != w.leader() {
			return
		}
		if s.core.phase == phaseWitness || s.core.phase == phaseReconciling {
			w.broker.deaf = 1
		}
		w.round()
	}
	if s == w.leader() {
		w.dieInFlight(t, s)
		s.disconnect()
	}
}

// recreatedRefused creates a stream again. A leader finds that only by its barriers, and the
// journal refuses the record of it for long. Until the journal has it, nothing is done to the
// stream's entries.
func (w *world) recreatedRefused(t *rapid.T) {
	w.recreate(t)
	s := w.pick(t)
	if w.leader() != nil || !w.broker.unnoticed {
		return
	}
	w.append(t)
	w.forgetOne(t, s)
	require.NoError(t, s.elect(w.refuses))
	refusals := rapid.IntRange(1, 8).Draw(t, "refusals")
	for range 12 {
		if s != w.leader() {
			return
		}
		w.step(s)
		for s.conn != nil && len(s.conn.out) > 0 {
			if j, err := wire.ParseJournal(s.conn.out[0].message.Body); err == nil && j.Type == wire.TypeRecreated && refusals > 0 {
				w.broker.deaf, refusals = 1, refusals-1
			}
			w.broker.process(s.conn, w.now)
		}
		for s.conn != nil && len(s.conn.answers) > 0 {
			w.answer(s)
		}
		require.NoError(t, s.readAll())
		w.now = w.now.Add(ledger.AgainAfter)
	}
}
