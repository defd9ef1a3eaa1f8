package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/gate"
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

// ahead decides how many jobs of a queue may be delivered and not ended: enough for its workers to
// be busy. What is in a queue already can neither be overtaken nor held back. So this keeps the
// turns of a governed queue fair. And it keeps rates: jobs that have piled up in a queue all begin
// when workers come.
type ahead struct {
	base
	gate    *gate.Gate[lookups]
	workers map[string]int64 // see setup.slotsOf
	askedAt time.Time
	at      time.Time             // of the last decision
	version int64                 // of the governed queues, at that time
	rated   int                   // queues, at that time
	queues  map[string]gate.Queue // by name
}

const (
	aheadEvery   = time.Second
	workersEvery = 2 * time.Second // how often it asks how many jobs workers run at once
)

// open decides before anything is delivered.
func (a *ahead) open(now time.Time, g *gate.Gate[lookups]) {
	a.gate = g
	a.step(now)
}

// step decides again from time to time, and at once for other queues.
func (a *ahead) step(now time.Time) {
	version, rated := a.entries.Governed.GovernedVersion(), len(a.gate.Rated())
	if version == a.version && rated == a.rated && now.Sub(a.at) < aheadEvery && !now.Before(a.at) {
		return
	}
	a.version, a.rated, a.at = version, rated, now
	queues, weights := map[string]gate.Queue{}, map[string]map[string]int64{}
	for _, q := range a.entries.Governed.GovernedQueues() {
		def, err := q.Definition()
		if err != nil || !q.Governs() {
			continue
		}
		// While jobs from before are in the queue, none is delivered.
		closed := def.Paused || q.State == wire.QueueSwitching || q.State == wire.QueueDraining
		queues[q.Name] = gate.Queue{Ahead: def.Ahead, Closed: closed, Governed: true}
		weights[q.Name] = def.Weights
	}
	for name := range a.gate.Rated() {
		if !queues[name].Governed {
			queues[name] = gate.Queue{}
		}
	}
	if len(queues) > 0 || len(a.queues) > 0 {
		a.decide(now, queues)
		a.gate.Weigh(weights)
		a.gate.Bound(now, queues)
	}
	a.queues = queues
}

// decide decides for queues whose definition does not say it.
func (a *ahead) decide(now time.Time, queues map[string]gate.Queue) {
	if a.setup.slotsOf != nil && (now.Sub(a.askedAt) >= workersEvery || now.Before(a.askedAt)) {
		a.workers, a.askedAt = a.setup.slotsOf(), now
	}
	var unsaid []string
	for name, q := range queues {
		n, said := a.workers[name]
		switch {
		case q.Ahead > 0:
			continue
		case q.Governed:
			q.Ahead = occupancy.GovernedAhead(n, said)
		default:
			q.Ahead = occupancy.RatedAhead(n, said)
		}
		if !said {
			unsaid = append(unsaid, name)
		}
		queues[name] = q
	}
	if a.setup.leftAlone == nil {
		return
	}
	alone := a.setup.leftAlone(unsaid)
	for _, name := range unsaid {
		q := queues[name]
		q.Closed = q.Closed || alone[name]
		queues[name] = q
	}
}
