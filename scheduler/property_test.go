package scheduler

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
)

func mapKeys[K cmp.Ordered, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// world is one run of the property test.
type world struct {
	t          *rapid.T
	broker     *modelBroker
	sidecars   []*modelSidecar
	now        time.Time
	latest     time.Time // the latest time before the clock was set
	appended   map[place]*appendedEntry
	operations map[string]bool // that were accepted
	ended      map[place]end   // answered deleted or killed
	sent       []sentCommand   // all commands about one entry
	pauses     map[string]*pauseAsked
	keys       map[string]*keyAsked
	jids       int
	commands   int

	journalLost bool
	truncated   bool                    // something was lost of the past: a rebuilt view does not know all of it
	trimmed     bool                    // some of that to retention
	asked       map[place]bool          // what a request may have deleted or killed
	lostKills   map[ledger.EntryID]bool // entries whose kill the journal had, in a record that it lost
	undos       map[place]int           // how often it was requested back
	undoing     map[place]string        // by which operation, last
	unanswered  map[place]int           // undos without an answer
	recreated   bool                    // an entry stream was deleted and created again
	disk        disk
	holes       []hole
	acting      *modelSidecar // events of the leader happen to this one
	freeAt      time.Time     // from when on the next may lead
	ends        []error       // why epochs have ended, except for lost connections
	late        bool          // the journal has a late record of a leader that was followed
	limited     limitedJobs
	unique      uniqueJobs
	// jobs may be in two places: the alternate exchange was gone, or an older version led
	unsafeAlternate bool
}

type appendedEntry struct {
	jid   string
	raw   string
	dead  bool
	asked int
	dues  map[int]time.Time // when it may fire, by the time of the request
}

// tries has rapid do so many runs of so many steps, unless the command line says otherwise.
func tries(t *testing.T, checks, steps int) {
	t.Helper()
	if slow {
		checks /= 10
	}
	settings := map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.steps": strconv.Itoa(steps)}
	for name, value := range settings {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			require.NoError(t, flag.Set(name, value))
			t.Cleanup(func() { require.NoError(t, flag.Set(name, f.DefValue)) })
		}
	}
}

// TestNothingIsLostOrDoubled drives leaders and views through all events and faults of the model.
func TestNothingIsLostOrDoubled(t *testing.T) {
	tries(t, 400, 60)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		t.Repeat(w.actions())
		w.quiesce()
		w.check()
	})
}

// actions are all events of the model.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append":           w.append,
		"append2":          w.append,
		"read":             w.read,
		"read2":            w.read,
		"elect":            w.elect,
		"lead":             w.lead,
		"lead2":            w.lead,
		"lead3":            w.lead,
		"run":              w.run,
		"command":          w.command,
		"repeat":           w.repeat,
		"change":           w.change,
		"undo":             w.undo,
		"regret":           w.regret,
		"overtake":         w.overtake,
		"operate":          w.operate,
		"cancel":           w.cancelOne,
		"undoOperation":    w.undoOperation,
		"pause":            w.pause,
		"enqueue":          w.enqueue,
		"enqueue2":         w.enqueue,
		"limited":          w.appendLimited,
		"limited2":         w.appendLimited,
		"unique":           w.appendUnique,
		"unique2":          w.appendUnique,
		"endFirst":         w.endFirst,
		"govern":           w.govern,
		"govern2":          w.governAndPublish,
		"publish":          w.publish,
		"consume":          w.consume,
		"bindQueue":        w.bindQueue,
		"bindQueue2":       w.bindQueue,
		"olderLeader":      w.olderLeader,
		"ended":            w.endJob,
		"ended2":           w.endJob,
		"work":             w.work,
		"killWorker":       w.killWorker,
		"periodic":         w.definePeriodic,
		"periodic2":        w.definePeriodic,
		"time":             w.pass,
		"clock":            w.setClock,
		"disconnect":       w.disconnect,
		"killSidecar":      w.killSidecar,
		"forget":           w.forget,
		"killBroker":       w.killBroker,
		"killQueue":        w.killQueue,
		"killHome":         w.killHome,
		"cutLink":          w.cutLink,
		"silence":          w.silence,
		"refuse":           w.refuse,
		"refuseRecords":    w.refuseRecords,
		"unroute":          w.unroute,
		"unroute2":         w.unroute,
		"recreate":         w.recreate,
		"lateRecord":       w.lateRecord,
		"carry":            w.carry,
		"carryRefused":     w.carryRefused,
		"takeoverRefused":  w.takeoverRefused,
		"recreatedRefused": w.recreatedRefused,
		"retention":        w.retention,
		"loseJournal":      w.loseJournal,
		"loseFires":        w.loseFires,
		"loseCopies":       w.loseCopies,
		"loseOpening":      w.loseOpening,
		"leadOn":           w.leadOn,
		"forgetJournal":    w.forgetJournal,
		"endHold":          w.endHold,
		"cutWay":           w.cutWay,
		"begunLate":        w.beginLate,
		"forgedRecords":    w.forge,
	}
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, broker: newModelBroker(), now: time.Unix(1_800_000_000, 0), appended: map[place]*appendedEntry{}, ended: map[place]end{},
		asked: map[place]bool{}, undos: map[place]int{}, undoing: map[place]string{}, unanswered: map[place]int{}, operations: map[string]bool{}, lostKills: map[ledger.EntryID]bool{}, pauses: map[string]*pauseAsked{}, keys: map[string]*keyAsked{}}
	w.broker.onCopy, w.broker.onRecord, w.broker.onAnswer = w.fired, w.noteUnique, w.answered
	w.unique = newUniqueJobs()
	w.broker.cluster = rapid.Bool().Draw(t, "cluster")
	w.broker.bounces = rapid.SampledFrom([]int{1, 3, math.MaxInt}).Draw(t, "bounces")
	w.broker.window = rapid.SampledFrom([]int{2, 4, ledger.MaxOpen}).Draw(t, "window")
	for i := range 2 {
		s, err := newModelSidecar(w.broker, fmt.Sprintf("s%d", i))
		require.NoError(t, err)
		s.lease = newLease(func() time.Time { return w.now })
		w.sidecars = append(w.sidecars, s)
	}
	require.NoError(t, w.sidecars[0].elect(w.refuses))
	w.limited = limitedJobs{most: rapid.IntRange(0, 2).Draw(t, "limit"), byHand: map[holder]bool{}, ended: map[string]bool{}}
	for range 8 {
		w.round()
		w.defineLimit()
	}
	return w
}

func (w *world) close() {
	for _, s := range w.sidecars {
		_ = s.store.Close()
	}
}

func (w *world) pick(t *rapid.T) *modelSidecar {
	return w.sidecars[rapid.IntRange(0, len(w.sidecars)-1).Draw(t, "sidecar")]
}

func (w *world) leader() *modelSidecar {
	if w.acting != nil && w.acting.core != nil {
		return w.acting
	}
	for _, s := range w.sidecars {
		if s.core != nil && s.conn == w.broker.conn {
			return s
		}
	}
	return nil
}

func mapsKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }
