package scheduler

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// A queue is governed by a switch of bindings, and not by its clients: jobs.direct leads its jobs
// to jobs.gated, and the leader delivers them through jobs.route as limits allow.
//
// The journal comes first: a queue that it calls governed is switched by whichever sidecar leads.
// The queue is unbound before jobs.gated is bound. A job that comes in between takes the alternate
// exchange, which leads to jobs.gated too. The other order would have it in both. For a queue that
// is governed no longer, all of this is undone in the same way.

// governed decides what is to become of governed queues.
type governed struct {
	base
	periodics *periodics
	version   int64                    // of the view, when the queues were looked at
	wanted    map[string]governing     // by name
	said      map[string]wire.Restated // what was journaled and is not read back yet
	looked    time.Time
	waiting   []request // they define queues, and wait for the alternate exchange to be tried
}

const capEvery = time.Second // how often the leader checks whether a queue is full

// define carries out a command that may govern a queue. It is refused unless jobs are kept that
// come while nothing is bound.
func (g *governed) define(now time.Time, r request) error {
	begins := false
	queues, err := r.cmd.Definitions.GovernedQueues()
	for _, q := range queues {
		known := g.entries.Governed.GovernedQueue(q.Name)
		begins = begins || known == nil || !known.Governs()
	}
	if err != nil || !begins {
		return g.periodics.command(now, r)
	}
	if len(g.waiting) >= maxEnqueuing {
		return r.reply(unavailable("too many commands about definitions wait: nothing was done, try again"))
	}
	if g.waiting = append(g.waiting, r); len(g.waiting) == 1 {
		g.setup.tryAlternate()
	}
	return nil
}

// errNoAlternate is returned if jobs would be lost while a queue is switched.
var errNoAlternate = errors.New(`jobs.direct has no alternate exchange, so jobs would be lost while the queue is switched: set it with ` +
	`rabbitmqctl set_policy --priority -10 --apply-to exchanges millrace-direct '^jobs\.direct$' '{"alternate-exchange":"jobs.unrouted"}'`)

// tried takes in whether the alternate exchange works.
func (g *governed) tried(now time.Time, fault error) error {
	waiting := g.waiting
	g.waiting = nil
	for _, r := range waiting {
		var err error
		switch {
		case errors.Is(fault, errNoAlternate):
			err = r.reply(wire.Reply{Status: wire.StatusDrifted, Error: "precondition_failed", Reason: fault.Error()})
		case fault != nil:
			err = r.reply(unavailable("cannot try the alternate exchange of jobs.direct: " + fault.Error() + ": nothing was done"))
		default:
			err = g.periodics.command(now, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step takes in what the view has of governed queues. Without any it does nothing.
func (g *governed) step(now time.Time) error {
	version := g.entries.Governed.GovernedVersion()
	if version == g.version && len(g.wanted) == 0 {
		return nil
	}
	if version == g.version && now.Sub(g.looked) < capEvery && !now.Before(g.looked) {
		return nil
	}
	g.version, g.looked = version, now
	wanted := map[string]governing{}
	for _, q := range g.entries.Governed.GovernedQueues() {
		w := governing{queue: q.Name, turn: q.Turn, state: q.State, leaves: !q.Governs()}
		if def, err := q.Definition(); err == nil && q.Governs() {
			w.capped = def.MaxWaiting > 0 || q.State == wire.QueueFull || q.State == wire.QueueSuspended
			was := g.wanted[q.Name].full || q.State == wire.QueueFull
			w.full = q.State != wire.QueueSwitching && def.Full(g.entries.InQueue(wire.Gated, q.Name), was)
		}
		wanted[q.Name] = w
		if s, open := g.said[q.Name]; open && (s.Turn != q.Turn || s.State == q.State) {
			delete(g.said, q.Name)
		}
	}
	maps.DeleteFunc(g.said, func(queue string, _ wire.Restated) bool { return wanted[queue].queue == "" })
	if !maps.Equal(wanted, g.wanted) {
		g.setup.govern(slices.SortedFunc(maps.Values(wanted), func(a, b governing) int { return cmp.Compare(a.queue, b.queue) }))
	}
	g.wanted = wanted
	return nil
}

// found journals a state in which a queue was found, if that is new. The fold ignores what is
// about an earlier turn.
func (g *governed) found(now time.Time, r restated) error {
	q, w := g.entries.Governed.GovernedQueue(r.queue), wire.Restated{Queue: r.queue, Turn: r.turn, State: r.state}
	if q == nil || q.Turn != r.turn || q.State == r.state || g.said[r.queue] == w {
		return nil
	}
	g.said[r.queue] = w
	return g.ledger.Record(now, wire.JournalRecord{Type: wire.TypeGoverned, Restated: []wire.Restated{w}}, ledger.EntryID{})
}

// maxQueuePiece is how many governed queues one record at low water has at most, each of up to
// three layers of 64 KiB.
const maxQueuePiece = 20

// carryOver writes the governed queues again, because low water would forget them. A state that is
// on its way to the view comes before that, and must not be undone.
func (g *governed) carryOver(now time.Time) error {
	more := false
	for some := range slices.Chunk(g.entries.Governed.GovernedQueues(), maxQueuePiece) {
		piece := &wire.QueuePiece{More: more}
		for _, q := range some {
			if said, open := g.said[q.Name]; !open || said.Turn != q.Turn {
				piece.Queues = append(piece.Queues, *q)
			} else if said.State != "" {
				now := *q
				now.State = said.State
				piece.Queues = append(piece.Queues, now)
			}
		}
		more = true
		if err := g.periodics.record(now, wire.JournalRecord{Type: wire.TypeState, Queues: piece}, func() {}); err != nil {
			return err
		}
	}
	return nil
}
