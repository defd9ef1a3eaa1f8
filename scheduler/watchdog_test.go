package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchdogScene is a watchdog whose clock the test moves.
type watchdogScene struct {
	*watchdog
	now time.Time
}

func newWatchdogScene() *watchdogScene {
	s := &watchdogScene{now: time.Now()}
	s.watchdog = newWatchdog(func() time.Time { return s.now }, openWithinAtFirst)
	return s
}

func TestWatchdogNoticesALeaderThatTakesNoStep(t *testing.T) {
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

// Other publishes that are confirmed do not help the one that is not.
func TestWatchdogWatchesTheOldestPublish(t *testing.T) {
	s := newWatchdogScene()
	p := progress{phase: phaseLeading, oldest: 3, waits: true}
	for range 31 {
		p.folded++
		s.Note(p)
		s.now = s.now.Add(time.Second)
	}
	require.ErrorContains(t, s.Check(false), "neither confirmed nor refused")
}

// Nothing is fired before an epoch's first publishes are answered, so that one which never is ends the epoch soon.
func TestWatchdogIsLessPatientBeforeAnythingIsFired(t *testing.T) {
	for phase, patience := range map[phase]time.Duration{phaseOpening: openWithinAtFirst, phaseCatchingUp: openWithinAtFirst, phaseReconciling: openWithin} {
		s := newWatchdogScene()
		s.Awaits()
		s.Note(progress{phase: phase, oldest: 1, waits: true})
		s.now = s.now.Add(patience)
		require.NoError(t, s.Check(false))
		s.now = s.now.Add(time.Millisecond)
		require.ErrorContains(t, s.Check(false), "neither confirmed nor refused within "+patience.String())
	}
}

func TestPatienceWithABrokerThatIsSlow(t *testing.T) {
	var u unanswered
	now := time.Now()
	u.note(now, errors.New("another reason"))
	require.Equal(t, openWithinAtFirst, u.patience(now))
	for _, patience := range []time.Duration{2 * openWithinAtFirst, 4 * openWithinAtFirst, 8 * openWithinAtFirst} {
		u.note(now, errUnanswered)
		require.Equal(t, patience, u.patience(now))
	}
	for range 100 {
		u.note(now, errUnanswered)
		require.Equal(t, openWithin, u.patience(now))
	}
	require.Equal(t, openWithinAtFirst, u.patience(now.Add(forgetUnanswered+1)), "another may have led meanwhile")
}

// What a leader does may take long, and then it has not looked at the answers.
func TestWatchdogKnowsThatAnswersWait(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseCatchingUp, oldest: 1, waits: true})
	s.Acts()
	s.now = s.now.Add(openWithinAtFirst + 1)
	require.NoError(t, s.Check(false))
	s.Awaits()
	require.NoError(t, s.Check(false), "it takes them now")
	s.now = s.now.Add(openWithinAtFirst + 1)
	require.ErrorIs(t, s.Check(false), errUnanswered)
}

func TestWatchdogSeesHesitation(t *testing.T) {
	s := newWatchdogScene()
	p := progress{phase: phaseCatchingUp, read: 1, waits: true}
	s.Note(p)
	require.False(t, s.Hesitates())
	s.now = s.now.Add(stuckEvery)
	require.True(t, s.Hesitates())
	p.read++
	s.Note(p)
	require.False(t, s.Hesitates(), "it has read something")
	p.phase = phaseLeading
	s.Note(p)
	s.now = s.now.Add(stuckEvery)
	require.False(t, s.Hesitates(), "it fires")
}

func TestWatchdogLetsWaitForWork(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseLeading})
	s.now = s.now.Add(time.Hour)
	require.NoError(t, s.Check(false))
	s.Note(progress{phase: phaseLeading, oldest: 1, waits: true})
	require.NoError(t, s.Check(false), "it was published just now")
}

func TestWatchdogLetsABlockedLeaderWait(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseLeading, oldest: 1, waits: true})
	s.now = s.now.Add(time.Hour)
	require.NoError(t, s.Check(true))
	s.now = s.now.Add(maxStuck)
	require.NoError(t, s.Check(false))
	s.now = s.now.Add(time.Millisecond)
	require.ErrorIs(t, s.Check(false), errResigned)
}

// The loop may be stuck in a call to the broker, and then says nothing.
func TestWatchdogNeedsNoLoop(t *testing.T) {
	s := newWatchdogScene()
	s.Note(progress{phase: phaseRouting, waits: true})
	s.now = s.now.Add(maxStuck + 1)
	require.ErrorContains(t, s.Check(false), "looking")
}
