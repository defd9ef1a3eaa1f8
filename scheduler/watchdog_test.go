package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

// watchdogScene is a watchdog whose clock the test moves.
type watchdogScene struct {
	*watchdog
	now time.Time
}

func newWatchdogScene() *watchdogScene {
	s := &watchdogScene{now: time.Now()}
	s.watchdog = newWatchdog(func() time.Time { return s.now }, claimWithin)
	return s
}

func TestWatchdogDetectsMissingSteps(t *testing.T) {
	for name, stuck := range map[string]progress{
		"opening":             {phase: phaseOpening, waits: true},
		"catching up":         {phase: phaseCatchingUp, read: 7, waits: true},
		"its publish is open": {phase: phaseLeading, oldest: 3, waits: true},
		"it is not read back": {phase: phaseLeading, folded: 5, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWatchdogScene()
			for range 30 { // the leader's loop runs, and the views of other streams change
				s.Note(stuck)
				require.NoError(t, s.Check(false))
				s.now = s.now.Add(time.Second)
			}
			s.now = s.now.Add(time.Millisecond)
			require.ErrorIs(t, s.Check(false), errResigned)
		})
	}
}

func TestWatchdogCountsSteps(t *testing.T) {
	step := progress{phase: phaseCatchingUp, read: 1, waits: true}
	for name, next := range map[string]func(*progress){
		"the next phase":       func(p *progress) { p.phase++ },
		"the streams are read": func(p *progress) { p.read++ },
		"a record is folded":   func(p *progress) { p.folded++ },
		"a publish is settled": func(p *progress) { p.phase = phaseLeading; p.oldest++ },
	} {
		t.Run(name, func(t *testing.T) {
			s, p := newWatchdogScene(), step
			for range 10 {
				s.Note(p)
				s.now = s.now.Add(maxStuck)
				require.NoError(t, s.Check(false))
				next(&p)
			}
		})
	}
}

// While the epoch catches up, its own records may be missing among all that it reads.
func TestWatchdogDetectsHesitation(t *testing.T) {
	for phase, hesitates := range map[phase]bool{phaseOpening: true, phaseCatchingUp: true, phaseReconciling: false, phaseLeading: false} {
		s, p := newWatchdogScene(), progress{phase: phase, waits: true}
		s.Note(p)
		require.False(t, s.Hesitates(), "%s", phase)
		s.now, p.read = s.now.Add(stuckEvery), p.read+1
		require.Equal(t, phase != phaseLeading, s.Hesitates(), "%s", phase)
		s.Note(p)
		require.Equal(t, hesitates, s.Hesitates(), "%s: it has read something", phase)
	}
}

// Confirms of other publishes do not help the one that has none.
func TestWatchdogTracksOldestPublish(t *testing.T) {
	s := newWatchdogScene()
	p := progress{phase: phaseLeading, oldest: 3, waits: true}
	for range 31 {
		p.folded++
		s.Note(p)
		s.now = s.now.Add(time.Second)
	}
	require.ErrorContains(t, s.Check(false), "neither confirmed nor refused")
}

// Nothing is fired before an epoch's first publishes are answered. One that is never answered ends
// the epoch soon.
func TestWatchdogIsStricterBeforeFirstFire(t *testing.T) {
	for phase, patience := range map[phase]time.Duration{phaseOpening: claimWithin, phaseCatchingUp: claimWithin, phaseReconciling: openWithin} {
		s := newWatchdogScene()
		s.Awaits()
		s.Note(progress{phase: phase, oldest: 1, waits: true})
		s.now = s.now.Add(patience)
		require.NoError(t, s.Check(false))
		s.now = s.now.Add(time.Millisecond)
		require.ErrorContains(t, s.Check(false), "neither confirmed nor refused within "+patience.String())
	}
}

func TestPatienceWithSlowBroker(t *testing.T) {
	var u unanswered
	patience := func(led int64) time.Duration { return u.patience(claimWithin, led) }
	u.note(phaseCatchingUp, errors.New("another reason"))
	u.note(phaseLeading, errUnanswered)
	require.Equal(t, claimWithin, patience(-1))
	for _, longer := range []time.Duration{2 * claimWithin, 4 * claimWithin, 8 * claimWithin} {
		u.note(phaseOpening, errUnanswered)
		require.Equal(t, longer, patience(-1))
	}
	for range 100 {
		u.note(phaseCatchingUp, errUnanswered)
		require.Equal(t, openWithin, patience(-1), "however long it takes")
	}
	require.Equal(t, claimWithin, patience(7), "another sidecar has led meanwhile")
	u.note(phaseOpening, errUnanswered)
	require.Equal(t, 2*claimWithin, patience(7))
}

// To give up a claim costs more where the next leader waits for this one, and gains nothing on a
// single node.
func TestPatienceByBroker(t *testing.T) {
	s := &Scheduler{services: &services{entries: newScene(t).sidecar("a").entries.Reader}}
	for _, c := range []struct {
		product, version string
		first            time.Duration
	}{{broker.RabbitMQ, "3.10.8", 3 * time.Second}, {broker.RabbitMQ, "4.2.0", 3 * time.Second}, {broker.RabbitMQ, "4.3.0", time.Second}, {broker.LavinMQ, "2.9.1", openWithin}} {
		require.Equal(t, c.first, s.claimPatience(broker.FeaturesOf(c.product, c.version)), c.version)
	}
	s.olderNodes.Store(true)
	require.Equal(t, claimWithinSlowly, s.claimPatience(broker.FeaturesOf(broker.RabbitMQ, "4.3.0")), "an upgrade is under way")
}

// A long task of the leader delays its reading of answers.
func TestWatchdogCountsUnreadAnswers(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseCatchingUp, oldest: 1, waits: true})
	s.Acts()
	s.now = s.now.Add(claimWithin + 1)
	require.NoError(t, s.Check(false))
	s.Awaits()
	require.NoError(t, s.Check(false), "it reads them now")
	s.now = s.now.Add(claimWithin + 1)
	require.ErrorIs(t, s.Check(false), errUnanswered)

	s = newWatchdogScene()
	s.Note(progress{phase: phaseReconciling, oldest: 1, waits: true})
	s.Acts()
	s.now = s.now.Add(openWithin + 1)
	require.NoError(t, s.Check(false), "also later in the epoch")
	s.Awaits()
	require.NoError(t, s.Check(false))
	s.now = s.now.Add(openWithin + 1)
	require.ErrorIs(t, s.Check(false), errUnanswered)
}

func TestWatchdogAllowsIdleLeader(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseLeading})
	s.now = s.now.Add(time.Hour)
	require.NoError(t, s.Check(false))
	s.Note(progress{phase: phaseLeading, oldest: 1, waits: true})
	require.NoError(t, s.Check(false), "it was published just now")
}

func TestWatchdogAllowsBlockedLeader(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseLeading, oldest: 1, waits: true})
	s.now = s.now.Add(time.Hour)
	require.NoError(t, s.Check(true))
	s.now = s.now.Add(maxStuck)
	require.NoError(t, s.Check(false))
	s.now = s.now.Add(time.Millisecond)
	require.ErrorIs(t, s.Check(false), errResigned)
}

// The loop may be stuck in a call to the broker, and then reports nothing.
func TestWatchdogDetectsStuckLoop(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseRouting, waits: true})
	s.now = s.now.Add(maxStuck + 1)
	require.ErrorContains(t, s.Check(false), "looking")
}
