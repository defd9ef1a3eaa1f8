package tracker

import (
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// GovernedQueues are the queues that are governed, or are ceasing to be.
type GovernedQueues struct {
	defined definitionsOf[wire.DefinedQueue]
	rules   gateRules
}

func newGovernedQueues() *GovernedQueues {
	g := &GovernedQueues{}
	g.defined.shown = g.show
	return g
}

// show makes the rules. They are nil while no queue is governed.
func (g *GovernedQueues) show(all map[string]*wire.DefinedQueue) {
	rules := map[string]gateRule{}
	for name, q := range all {
		if rule := ruleOf(q); rule != nil {
			rules[name] = *rule
		}
	}
	g.rules.all.Store(&rules)
	if len(rules) == 0 {
		g.rules.all.Store(nil)
	}
}

// ruleOf returns the rule of a queue, nil if it is not governed.
func ruleOf(q *wire.DefinedQueue) *gateRule {
	if q == nil || !q.Governs() {
		return nil
	}
	def, err := q.Definition()
	if err != nil { // it was checked when it was defined
		return &gateRule{}
	}
	return &gateRule{def.Key}
}

// GovernedVersion returns a number that changes when a definition or a state does.
func (g *GovernedQueues) GovernedVersion() int64 { return g.defined.version.Load() }

// GovernedQueue returns a queue, nil if it is not governed. One that is ceasing to be is returned.
func (g *GovernedQueues) GovernedQueue(name string) *wire.DefinedQueue { return g.defined.get(name) }

// GovernedQueues returns all of them, by name.
func (g *GovernedQueues) GovernedQueues() []*wire.DefinedQueue { return g.defined.list() }

// Gates returns whether a job is gated, and the key under which limits count it.
func (g *GovernedQueues) Gates(job *wire.Job) (gated bool, key string) {
	rule := g.rules.of(job.Queue)
	if rule == nil {
		return job.Gated, job.LimitKey
	}
	if job.LimitKey != "" {
		return true, job.LimitKey
	}
	return true, rule.keyOf(job.Raw)
}

// governing writes the governed queues. When a queue begins or ceases to be governed, its entries
// move from the index of queues to that of groups, or back.
type governing struct {
	queues definedTable[wire.DefinedQueue]
	rules  *gateRules
	fresh  map[string]*gateRule // of queues that this batch has changed
}

func newGoverning(g *GovernedQueues) *governing {
	return &governing{queues: definedTable[wire.DefinedQueue]{kept: &g.defined, prefix: tableGoverned, word: "governed queue"}, rules: &g.rules}
}

func (t *governing) load(r view.Reader) error {
	t.fresh = nil
	_, err := t.queues.load(r)
	return err
}

// ruleOf returns the rule of a queue as this batch has it.
func (t *governing) ruleOf(tx *view.Tx, queue string) *gateRule {
	t.begin(tx)
	if rule, changed := t.fresh[queue]; changed {
		return rule
	}
	return t.rules.of(queue)
}

func (t *governing) begin(tx *view.Tx) {
	if t.queues.begin(tx) {
		t.fresh = nil
	}
}

// keyOf returns the key under which limits count a job.
func (t *governing) keyOf(tx *view.Tx, job *wire.Job) string {
	if rule := t.ruleOf(tx, job.Queue); rule != nil && job.LimitKey == "" {
		return rule.keyOf(job.Raw)
	}
	return job.LimitKey
}

// set sets what is known of a queue, nil removes it, and moves its entries.
func (t *governing) set(tx *view.Tx, entries *entryTable, name string, q *wire.DefinedQueue) error {
	before, now := t.ruleOf(tx, name), ruleOf(q)
	if err := t.queues.set(tx, name, q); err != nil {
		return err
	}
	if t.fresh == nil {
		t.fresh = map[string]*gateRule{}
	}
	t.fresh[name] = now
	if before == nil && now == nil || before != nil && now != nil && *before == *now {
		return nil
	}
	return entries.regate(tx, name)
}

// define takes in layers that were set or removed. turn is where the journal says so.
func (t *governing) define(tx *view.Tx, entries *entryTable, j *wire.JournalRecord, turn int64) error {
	for _, d := range j.Defined {
		if d.Kind != wire.KindQueue {
			continue
		}
		old := t.queues.get(tx, d.Name)
		q := wire.DefinedQueue{Name: d.Name}
		if old != nil {
			q = *old
		}
		q.Layers = withLayer(q.Layers, &d, j)
		switch governed := old != nil && old.Governs(); {
		case q.Governs() && !governed:
			q.State, q.Since, q.Turn = wire.QueueSwitching, j.At, turn
		case !q.Governs() && governed:
			q.State, q.Since, q.Turn = wire.QueueLeaving, j.At, turn
		case old == nil:
			continue
		}
		if err := t.set(tx, entries, d.Name, &q); err != nil {
			return err
		}
	}
	return nil
}

// restate takes in states. A queue that has left is forgotten.
func (t *governing) restate(tx *view.Tx, entries *entryTable, j *wire.JournalRecord) error {
	for _, r := range j.Restated {
		old := t.queues.get(tx, r.Queue)
		if old == nil || old.Turn != r.Turn || old.Governs() == (r.State == "") {
			continue
		}
		q := *old
		q.State, q.Since = r.State, j.At
		kept := &q
		if r.State == "" {
			kept = nil
		}
		if err := t.set(tx, entries, r.Queue, kept); err != nil {
			return err
		}
	}
	return nil
}

// replace takes in governed queues that were written again at low water.
func (t *governing) replace(tx *view.Tx, entries *entryTable, piece *wire.QueuePiece) error {
	if piece == nil {
		return nil
	}
	named := map[string]bool{}
	for i := range piece.Queues {
		q := &piece.Queues[i]
		named[q.Name] = true
		if err := t.set(tx, entries, q.Name, q); err != nil {
			return err
		}
	}
	for name := range t.queues.names(tx) {
		if !piece.More && !named[name] {
			if err := t.set(tx, entries, name, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
