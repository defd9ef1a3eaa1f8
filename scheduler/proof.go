package scheduler

import (
	"context"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// proof says which queues certainly have a fire that the journal has, although no confirm came, as
// long as the witness shows that nothing has restarted. All others get the job again.
type proof struct {
	alone bool            // the broker is one node, so what is not known of a queue does not matter
	known map[string]bool // queues, by full name, with whether they prove anything

	unread bool // the broker did not say: nothing is known, and nothing proven
}

// of reports whether a queue certainly has what was fired to it.
func (p proof) of(queue string) bool {
	proves, known := p.known[wire.QueuePrefix+queue]
	return proves || p.alone && !known
}

// How many fires a queue may have open. All of those may come twice when a sidecar or a node dies,
// so the less can be proven, the fewer.
const (
	maxOpenClassic  = ledger.MaxOpen / 2
	maxOpenUnproven = 64
)

// window is how many fires a queue may have open.
func (p proof) window(queue string) int {
	proves, known := p.known[wire.QueuePrefix+queue]
	switch {
	case known && !proves:
		return maxOpenUnproven
	case !p.alone:
		return maxOpenClassic
	}
	return ledger.MaxOpen
}

// proves reports whether a queue has what was fired to it, if its node has not restarted. A quorum
// queue may not: it drops unconfirmed messages when the channel of their publisher ends. Nor may a
// queue that refuses jobs, a mirrored one, which moves, or one whose node is away.
func proves(q broker.QueueInfo) bool {
	return q.Type == "classic" && !q.MayRefuse() && !q.Mirrored && q.State != "down" && q.State != "stopped"
}

// beginWithin is how long the broker may take to say what its queues can prove when a leader
// begins, which fires nothing meanwhile. A leader without an answer asks again beside the loop.
const beginWithin = 2 * time.Second

// readProof asks the broker what its queues can prove now.
func (q *queueBook) readProof(ctx context.Context, alone bool, within time.Duration) proof {
	known := map[string]bool{}
	if q.mgmt != nil {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		queues, err := q.mgmt.Queues(ctx)
		if err != nil {
			q.log.Warn("scheduler: cannot list queues", "error", err)
			return proof{unread: true}
		}
		for _, info := range queues {
			known[info.Name] = proves(info)
		}
	}
	return proof{alone: alone, known: known}
}

// newerProof finds out what queues can prove that are newer than the epoch: a new quorum queue may
// have fewer fires unconfirmed than a classic one.
type newerProof struct {
	asking bool
	again  string // a queue that was bound while the broker was asked
	found  chan map[string]bool
}

// readAgainEvery is how often a broker is asked that does not answer.
const readAgainEvery = 5 * time.Second

func newNewerProof() newerProof { return newerProof{found: make(chan map[string]bool)} }

// ask reads again, beside the loop, what queues can prove, if that is not known of one.
func (n *newerProof) ask(l *leadership, queue string) {
	if _, known := l.proof.known[wire.QueuePrefix+queue]; known || l.s.mgmt == nil {
		return
	}
	if n.asking {
		n.again = queue
		return
	}
	n.read(l)
}

// read reads it, until the broker answers.
func (n *newerProof) read(l *leadership) {
	n.asking = true
	l.beside(func(ctx context.Context) {
		for {
			if p := l.s.readProof(ctx, false, listQueuesWithin); !p.unread {
				select {
				case n.found <- p.known:
				case <-ctx.Done():
				}
				return
			}
			if pause.For(ctx, readAgainEvery) != nil {
				return
			}
		}
	})
}

// take takes in what was read.
func (n *newerProof) take(l *leadership, known map[string]bool) {
	n.asking, l.proof.known, l.proof.unread = false, known, false
	l.core.queues.limit(l.core.setup.window)
	if queue := n.again; queue != "" {
		n.again = ""
		n.ask(l, queue)
	}
}

// queueOf returns the queue to which a fire in doubt went.
func queueOf(d *tracker.Doubt) string {
	if d.Entry != nil {
		return d.Entry.Queue
	}
	job, err := wire.ParseJob(d.Body)
	if err != nil {
		return ""
	}
	return job.Queue
}
