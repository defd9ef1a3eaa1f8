package prom

import (
	"github.com/millrace-jobs/millrace/tracker/occupancy"
	"github.com/millrace-jobs/millrace/wire"
)

var (
	descGovernedState   = desc("governed_state", "1 for the state of a governed queue, such as governed, full or draining.", "queue", "state")
	descGovernedPaused  = desc("governed_paused", "1 if a governed queue is paused: no job of it is delivered.", "queue")
	descGovernedWaiting = desc("governed_waiting", "Jobs of a governed queue that are due and wait, of the 200,000 that are counted.", "queue")
	descGovernedOut     = desc("governed_out", "Jobs of a governed queue that are delivered and have not ended.", "queue")
	descGovernedMax     = desc("governed_max_waiting", "max_waiting of a governed queue: while so many jobs wait, more are refused.", "queue")
)

// governed sends what governed queues do. Of one that leaves, only the state is sent.
func (s sink) governed(all []*wire.DefinedQueue, counts *occupancy.Counts) {
	if len(all) == 0 {
		return
	}
	queues := counts.Queues()
	for _, q := range all {
		s.gauge(descGovernedState, 1, q.Name, q.State)
		if !q.Governs() {
			continue
		}
		s.gauge(descGovernedWaiting, float64(queues[q.Name].Waiting), q.Name)
		s.gauge(descGovernedOut, float64(queues[q.Name].Used), q.Name)
		def, err := q.Definition()
		if err != nil {
			continue
		}
		s.gauge(descGovernedPaused, truth(def.Paused), q.Name)
		if def.MaxWaiting > 0 {
			s.gauge(descGovernedMax, float64(def.MaxWaiting), q.Name)
		}
	}
}
