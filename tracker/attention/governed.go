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
