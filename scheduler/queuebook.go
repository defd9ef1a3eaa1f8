package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// queueBook is what a sidecar knows of the broker's queues. It is safe for concurrent use. Job
// queues are named without their prefix in made and fatal, and with it in the other maps.
type queueBook struct {
	*services

	mu        sync.Mutex
	kept      map[string]broker.Retention // of streams; nil if the broker does not report it
	made      map[string]time.Time        // queues that this process declared: when they were last used
	fatal     map[string]int              // how often a question about a queue ended the connection
	queues    map[string]bool             // whether a queue may lack a job that was fired to it, see proof
	routed    map[string]bool             // queues that are known to be bound to jobs.route
	jobQueues int                         // how many of queues are job queues
	switching sync.RWMutex                // held while queues are bound, and while they are switched
	nodes     map[string]string           // on which node a queue is, if the broker reports it
}

// refreshQueues reads the queues. It does not wait if an earlier term knew them: a management API
// may be slow while a node is frozen.
func (q *queueBook) refreshQueues(ctx context.Context, beside *sync.WaitGroup) {
	q.mu.Lock()
	known := q.kept != nil
	q.mu.Unlock()
	if !known {
		q.readQueues(ctx)
		return
	}
	beside.Go(func() { q.readQueues(ctx) })
}

// readQueues notes which queues there are and where, and how long the streams among them keep
// records.
func (q *queueBook) readQueues(ctx context.Context) {
	if q.mgmt == nil {
		return
	}
	within, cancel := context.WithTimeout(ctx, listQueuesWithin)
	defer cancel()
	queues, err := q.mgmt.Queues(within)
	if err != nil {
		if ctx.Err() == nil {
			q.log.Warn("scheduler: cannot list queues", "error", err)
		}
		return
	}
	found, kept, nodes := map[string]bool{}, map[string]broker.Retention{}, map[string]string{}
	for _, info := range queues {
		found[info.Name], nodes[info.Name] = !proves(info), info.Node
		if info.Type == "stream" {
			kept[info.Name] = info.Retention()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queues, q.kept, q.nodes, q.jobQueues = found, kept, nodes, countJobQueues(found)
}

// maxMade bounds how many queues are remembered as made here.
const maxMade = 10_000

func (q *queueBook) noteMade(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.made) < maxMade {
		q.made[name] = time.Now()
	}
}

// madeHere returns the queues that this process made, with when they were last in use.
func (q *queueBook) madeHere() map[string]time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.made)
}

func (q *queueBook) forgetMade(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.made, name)
}

// errFatalName is returned for a queue about which the broker is not asked any more. RabbitMQ 4
// cannot name a queue that is another connection's alone if its name is not ASCII, and closes the
// connection instead.
var errFatalName = errors.New("scheduler: bad name: the broker closed the connection each time that it was asked about this queue")

func (q *queueBook) noteFatal(name string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if broker.CausedByClient(err) && len(q.fatal) < maxBad {
		q.fatal[name]++
	}
}

func (q *queueBook) isFatal(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fatal[name] >= maxKills
}

var errTooMany = errors.New("scheduler: no more queues are made")

// roomFor returns an error if a queue is not known and no more of them are made.
func (q *queueBook) roomFor(name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, exists := q.queues[wire.QueuePrefix+name]; exists || q.jobQueues < q.cfg.MaxQueues {
		return nil
	}
	return fmt.Errorf("%w: there are %d, max-queues is %d", errTooMany, q.jobQueues, q.cfg.MaxQueues)
}

// isBound reports whether a queue is bound to jobs.route, as far as is known.
func (q *queueBook) isBound(name string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.routed[wire.QueuePrefix+name]
}

// noteBound notes that a queue is there, and bound.
func (q *queueBook) noteBound(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := wire.QueuePrefix + name
	if _, known := q.queues[queue]; !known {
		q.queues[queue] = false
		q.jobQueues++
	}
	if q.routed == nil {
		q.routed = map[string]bool{}
	}
	q.routed[queue] = true
}

// noteUnbound notes that a queue is not bound any more.
func (q *queueBook) noteUnbound(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.routed, wire.QueuePrefix+name)
}

// readBindings notes which queues are bound to jobs.route.
func (q *queueBook) readBindings(ctx context.Context) {
	if q.mgmt == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listQueuesWithin)
	defer cancel()
	routed, err := q.mgmt.BoundTo(ctx, wire.ExchangeRoute)
	if err != nil {
		q.log.Warn("scheduler: cannot list bindings: each queue is looked up before the first delivery to it", "error", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.routed = routed
}

// countJobQueues returns how many of some queues are job queues.
func countJobQueues(queues map[string]bool) (n int) {
	for q := range queues {
		if strings.HasPrefix(q, wire.QueuePrefix) {
			n++
		}
	}
	return n
}

// homes returns the node of each queue, by full name, as far as the broker reports it.
func (q *queueBook) homes() map[string]string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nodes
}

// bindQueue makes a queue if it is missing, and binds it: to jobs.direct only if it is not
// governed. Meanwhile no queue is switched.
func (q *queueBook) bindQueue(ctx context.Context, conn *broker.Conn, name string) error {
	q.switching.RLock()
	defer q.switching.RUnlock()
	if q.entries.Governed.GovernedQueue(name) != nil {
		return conn.Queues().EnsureRouted(ctx, name)
	}
	return conn.Queues().Ensure(ctx, name)
}

// direct sends jobs for a governed queue along a route. Meanwhile no queue is bound.
func (q *queueBook) direct(ctx context.Context, conn *broker.Conn, route broker.Route) error {
	q.switching.Lock()
	defer q.switching.Unlock()
	return conn.Queues().Direct(ctx, route)
}
