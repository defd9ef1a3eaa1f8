package attention

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Governed is a governed queue, with how long it has had its state.
type Governed struct {
	Queue string
	State string
	For   time.Duration
}

// maxDraining is how long jobs from before may be in a governed queue before that is worth a look.
const maxDraining = 5 * time.Minute

// GovernedOf returns the governed queues.
func GovernedOf(queues []*wire.DefinedQueue, now time.Time) (all []Governed) {
	for _, q := range queues {
		all = append(all, Governed{q.Name, q.State, now.Sub(time.UnixMicro(int64(q.Since * 1e6)))})
	}
	return all
}

// governed adds the governed queues that something is wrong with.
func (f *Facts) governed(add adder) {
	for _, q := range f.Governed {
		switch long := q.For > maxDraining; {
		case q.State == wire.QueueFull:
			add(Full, warning, q.Queue, q.For.Seconds(), "as many jobs wait as its max_waiting allows: for %s, more have been refused", span(q.For))
		case q.State == wire.QueueSuspended:
			add(Suspended, warning, q.Queue, q.For.Seconds(), "as many jobs wait as its max_waiting allows, but more are taken: the node of the queue jobs.full is away")
		case q.State == wire.QueueBypassed:
			add(Bypassed, warning, q.Queue, 1, "a client had bound the governed queue to jobs.direct: jobs came to it without limits; workers need not bind a queue")
		case q.State == wire.QueueDraining && long:
			add(Draining, warning, q.Queue, q.For.Seconds(), "no job has been delivered for %s: jobs from before the queue was governed are still in it", span(q.For))
		case (q.State == wire.QueueSwitching || q.State == wire.QueueLeaving) && long:
			add(Draining, warning, q.Queue, q.For.Seconds(), "the queue has been switching for %s: the log of the leader says why", span(q.For))
		}
	}
}
