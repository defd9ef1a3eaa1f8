package tracker

import "github.com/millrace-jobs/millrace/wire"

// gating is what limits need to know of an entry.
type gating struct {
	Gated    bool   // it fires only when its limits allow
	LimitKey string // of a gated job
	Slot     string // of a lease: the slot that the job holds
	uniqueness
}

// gatingOf returns it of an entry that was read. A lease holds its slot already, and is not gated.
func gatingOf(e *wire.EntryRecord) gating {
	if e.Lease {
		return gating{Slot: e.Slot}
	}
	return gating{Gated: e.Job.Gated && e.Stream != wire.DeadJobs, LimitKey: e.Job.LimitKey, uniqueness: uniquenessOf(e)}
}
