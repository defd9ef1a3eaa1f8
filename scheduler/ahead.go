package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/gate"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// ahead decides how many jobs of a queue may be delivered and not ended. What is in a queue already
// can neither be overtaken nor held back. So few jobs of a governed queue are there: enough for its
// workers to be busy. And jobs that a rate counts do not pile up in a queue that no one serves:
// they would all begin when workers start.
type ahead struct {
	base
	gate     *gate.Gate[lookups]
	workers  map[string]int64 // see setup.slotsOf
	askedAt  time.Time
	at       time.Time             // of the last decision
	version  int64                 // of the governed queues, at that time
	rated    int64                 // the version of the gate's rated queues
	governed map[string]gate.Queue // by name, as they are defined
	queues   map[string]gate.Queue // by name, as it was decided
	watched  []string              // queues that are checked for consumers
	unserved map[string]bool       // the results, of those that were checked
}

const (
	aheadEvery   = time.Second
	workersEvery = 5 * time.Second // how often it asks how many jobs workers run at once
)

// open decides before anything is delivered.
func (a *ahead) open(now time.Time, g *gate.Gate[lookups]) {
	a.gate, a.unserved = g, map[string]bool{}
	a.readGoverned()
	a.decide(now)
}

// step decides again from time to time, and at once for other queues.
func (a *ahead) step(now time.Time) {
	version, rated := a.entries.Governed.GovernedVersion(), a.gate.RatedVersion()
	if version == a.version && rated == a.rated && now.Sub(a.at) < aheadEvery && !now.Before(a.at) {
		return
	}
	if version != a.version {
		a.readGoverned()
	}
	a.rated, a.at = rated, now
	a.decide(now)
}

// readGoverned takes in the governed queues.
func (a *ahead) readGoverned() {
	weights := map[string]map[string]int64{}
	a.version, a.governed = a.entries.Governed.GovernedVersion(), map[string]gate.Queue{}
	for _, q := range a.entries.Governed.GovernedQueues() {
		def, err := q.Definition()
		if err != nil || !q.Governs() {
			continue
		}
		// While jobs from before are in the queue, none is delivered.
		closed := def.Paused || q.State == wire.QueueSwitching || q.State == wire.QueueDraining
		a.governed[q.Name] = gate.Queue{Ahead: def.Ahead, Closed: closed, Governed: true}
		weights[q.Name] = def.Weights
	}
	a.gate.Weigh(weights)
}

// decide decides about all governed queues, and those with jobs that a rate counts.
func (a *ahead) decide(now time.Time) {
	queues := maps.Clone(a.governed)
	for name := range a.gate.Rated() {
		if !queues[name].Governed {
			queues[name] = gate.Queue{}
		}
	}
	if len(queues) == 0 && len(a.queues) == 0 {
		return
	}
	a.askWorkers(now)
	var watched []string
	for name, q := range queues {
		workers, reported := a.workers[name]
		if !q.Governed || q.Ahead == 0 && !reported {
			watched = append(watched, name)
		}
		if q.Governed && q.Ahead == 0 {
			q.Ahead = occupancy.GovernedAhead(workers, reported)
			queues[name] = q
		}
	}
	a.watch(watched, queues)
	a.gate.Bound(now, queues)
	a.queues = queues
}

func (a *ahead) askWorkers(now time.Time) {
	if a.setup.slotsOf != nil && (now.Sub(a.askedAt) >= workersEvery || now.Before(a.askedAt)) {
		a.workers, a.askedAt = a.setup.slotsOf(), now
	}
}

// watch has queues checked for consumers. It closes those that no one serves, and those that were not
// checked yet.
func (a *ahead) watch(watched []string, queues map[string]gate.Queue) {
	if a.setup.watchUnserved == nil {
		return
	}
	slices.Sort(watched)
	if !slices.Equal(watched, a.watched) {
		a.watched = watched
		a.setup.watchUnserved(watched)
		maps.DeleteFunc(a.unserved, func(name string, _ bool) bool {
			_, found := slices.BinarySearch(watched, name)
			return !found
		})
	}
	for _, name := range watched {
		q := queues[name]
		is, known := a.unserved[name]
		q.Closed = q.Closed || is || !known
		queues[name] = q
	}
}

// checked takes in whether no one serves a queue.
func (a *ahead) checked(now time.Time, u unserved) {
	if is, known := a.unserved[u.queue]; known && is == u.is {
		return
	}
	if _, watched := slices.BinarySearch(a.watched, u.queue); watched {
		a.unserved[u.queue] = u.is
		a.decide(now)
	}
}
