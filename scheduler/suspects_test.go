package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// scene is a leader on the model's broker, driven step by step.
type scene struct {
	t      *testing.T
	broker *modelBroker
	now    time.Time
	onto   map[string]*modelSidecar
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, broker: newModelBroker(), now: time.Unix(1_800_000_000, 0), onto: map[string]*modelSidecar{}}
}

func (sc *scene) sidecar(name string) *modelSidecar {
	s, err := newModelSidecar(sc.broker, name)
	require.NoError(sc.t, err)
	sc.t.Cleanup(func() { _ = s.store.Close() })
	sc.onto[name] = s
	return s
}

// due appends an entry that is due.
func (sc *scene) due(jid, queue string) int64 {
	return sc.at(jid, queue, sc.now)
}

// fires has a leader send a job that is due.
func (sc *scene) fires(s *modelSidecar, jid, queue string) {
	sc.t.Helper()
	sc.due(jid, queue)
	require.NoError(sc.t, s.readAll())
	require.NoError(sc.t, s.step(sc.now))
}

func (sc *scene) at(jid, queue string, due time.Time) int64 {
	body := fmt.Sprintf(`{"jid":%q,"scheduled_at":%d,"job":{"class":"C","queue":%q}}`, jid, due.Unix(), queue)
	return sc.broker.append(wire.ScheduledJobs, "client", wire.Message{Body: []byte(body)})
}

// elect has a sidecar lead, as far as the broker confirms and the view reads.
func (sc *scene) elect(s *modelSidecar, refuses func(string) bool) {
	require.NoError(sc.t, s.elect(refuses))
}

// rounds lets a leader work undisturbed, until dies returns true: the next publish ends its
// connection.
func (sc *scene) rounds(s *modelSidecar, n int, dies func(wire.Message) bool) (died bool) {
	for range n {
		sc.now = sc.now.Add(200 * time.Millisecond)
		require.NoError(sc.t, s.step(sc.now))
		for len(s.conn.out) > 0 {
			if dies != nil && dies(s.conn.out[0].message) {
				return true
			}
			sc.broker.process(s.conn, sc.now)
		}
		for len(s.conn.answers) > 0 {
			require.NoError(sc.t, s.answer(sc.now))
		}
		require.NoError(sc.t, s.readAll())
	}
	return false
}

// copies counts what the queues got.
func (sc *scene) copies() map[string]int {
	n := map[string]int{}
	for _, c := range sc.broker.copies {
		if !c.gone {
			n[c.headers.JIDTag]++
		}
	}
	return n
}

func never(string) bool { return false }

// A message that ends the connection is found and parked, at each moment at which it can do so:
// before the broker has done anything with it, when the journal has its copy, or when a new leader
// fires again what is in doubt. No other job is affected.
func TestPoisonIsParked(t *testing.T) {
	for name, c := range map[string]struct {
		journaled bool // the broker writes the journal's copy before it dies of the queue's
		refuses   func(string) bool
	}{
		"not stored":            {false, never},
		"journaled":             {true, never},
		"journaled and refired": {true, func(string) bool { return true }},
		"not stored, refired":   {false, func(string) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScene(t)
			s := sc.sidecar("a")
			process := &Scheduler{}
			for i := range 30 {
				jid := fmt.Sprint("j", i)
				if i == 15 {
					jid = "poison"
				}
				sc.due(jid, "q")
			}
			deaths := 0
			for lives := true; lives; {
				sc.elect(s, c.refuses)
				lives = sc.rounds(s, 100, func(m wire.Message) bool {
					d, _ := wire.DispatchOf(m.Headers)
					return d.JIDTag == "poison"
				})
				if !lives {
					break
				}
				if deaths++; c.journaled {
					sc.broker.append(wire.Journal, millrace, s.conn.out[0].message)
				}
				require.Less(t, deaths, 5, "the epochs do not end")
				process.remember(s.core, true)
				s.lose()
				s.known, s.suspect = process.known, process.suspects
			}
			got := sc.copies()
			for i := range 30 {
				if i == 15 {
					continue
				}
				jid := fmt.Sprint("j", i)
				require.Positive(t, got[jid], "%s is lost", jid)
				if !c.refuses("q") {
					require.Equal(t, 1, got[jid], jid)
				}
			}
			parked, err := s.entries.Find(wire.ScheduledJobs, "poison")
			require.NoError(t, err)
			if c.journaled && !c.refuses("q") {
				require.Equal(t, 1, deaths)
				require.Empty(t, parked, "the journal has it, and the broker has not restarted")
			} else {
				require.Equal(t, maxKills, deaths)
				require.Len(t, parked, 1)
				require.Contains(t, parked[0].Parked, "connection died")
			}
			require.Len(t, parked, int(s.entries.Total(wire.ScheduledJobs)), "nothing else waits")
			require.Empty(t, s.core.ledger.Suspects(), "nothing is suspected any more")
			doubts, err := s.entries.Doubts()
			require.NoError(t, err)
			require.Empty(t, doubts)
		})
	}
}

// A poison job that only the journal has, because it was truncated from its stream, cannot be
// parked. It is listed as rejected.
func TestPoisonOnlyInJournalIsListed(t *testing.T) {
	sc := newScene(t)
	s := sc.sidecar("a")
	process := &Scheduler{}
	refuses := func(string) bool { return true }
	poison := func(m wire.Message) bool {
		d, ok := wire.DispatchOf(m.Headers)
		return ok && d.JIDTag == "poison"
	}
	sc.due("poison", "q")
	sc.elect(s, refuses)
	for deaths := 0; sc.rounds(s, 50, poison); deaths++ {
		require.Less(t, deaths, 5, "the epochs do not end")
		if deaths == 0 { // the journal gets its copy, and the stream loses its own
			sc.broker.append(wire.Journal, millrace, s.conn.out[0].message)
			sc.due("other", "q")
			stream := sc.broker.streams[wire.ScheduledJobs]
			stream.base, stream.records = stream.end()-1, stream.records[len(stream.records)-1:]
		}
		process.remember(s.core, true)
		s.lose()
		require.NoError(t, s.forget())
		s.known, s.suspect = process.known, process.suspects
		sc.elect(s, refuses)
	}
	r, listed := tracker.Reject{}, 0
	require.NoError(t, s.entries.Rejects(wire.Journal, func(j tracker.Reject) bool {
		r, listed = j, listed+1
		return true
	}))
	require.Equal(t, 1, listed)
	require.Contains(t, r.Reason, "connection died")
	require.Contains(t, string(r.Body), "poison")
	doubts, err := s.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
	require.Equal(t, map[string]int{"other": 1}, sc.copies())
}
