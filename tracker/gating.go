package tracker

import (
	"strings"
	"sync/atomic"

	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// gating is what limits need to know of an entry.
type gating struct {
	Gated    bool   // it fires only when its limits allow
	LimitKey string // of a gated job
	Slot     string // of a lease: the slot that the job holds
	own      jobGate
	uniqueness
}

// jobGate is what a job itself says. Its queue may say more.
type jobGate struct {
	gated bool
	key   string
}

func (g *gating) set(own jobGate) { g.own, g.Gated, g.LimitKey = own, own.gated, own.key }

// gatingOf returns it of an entry that was read. A lease holds its slot already, and is not gated.
func gatingOf(e *wire.EntryRecord) (g gating) {
	if e.Lease {
		return gating{Slot: e.Slot}
	}
	g.set(jobGate{e.Job.Gated && e.Stream != wire.DeadJobs, e.Job.LimitKey})
	g.uniqueness = uniquenessOf(e)
	return g
}

// gateRule is how the jobs of a governed queue are gated.
type gateRule struct{ key string }

// gateRules are the rules of all governed queues. An empty set costs a look at a pointer.
type gateRules struct {
	all atomic.Pointer[map[string]gateRule]
}

func (r *gateRules) of(queue string) *gateRule {
	all := r.all.Load()
	if all == nil {
		return nil
	}
	if rule, governed := (*all)[queue]; governed {
		return &rule
	}
	return nil
}

// keyOf returns the key of a job, empty if it has none: a text, or a number as it is written.
func (r *gateRule) keyOf(job []byte) string {
	if r.key == "" {
		return ""
	}
	at := gjson.ParseBytes(job)
	for step := range strings.SplitSeq(r.key, ".") {
		at = wire.Within(at, step)
	}
	key := ""
	switch at.Type {
	case gjson.String:
		key = wire.TextOf(at)
	case gjson.Number:
		key = at.Raw
	}
	if wire.CheckLimitKey(key) != nil {
		return ""
	}
	return strings.Clone(key)
}

// ruler knows the rules as a batch has them.
type ruler interface {
	ruleOf(tx *view.Tx, queue string) *gateRule
}
