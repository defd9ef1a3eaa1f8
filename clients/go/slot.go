package millrace

import (
	"context"
	"encoding/json"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// A job that limits count holds a slot while it is out. The worker reports with a record of
// jobs.ends that the job has ended, before it answers the delivery. A job that may have begun
// before is claimed first: the leader says whether it may run.

// The outcome of a job that ran elsewhere, or that another copy stands for.
var dropped = outcome{}

// slot returns the slot that a delivery holds, "" if it holds none.
func (t *task) slot() string {
	slot, _ := t.d.Headers[wire.HeaderSlot].(string)
	return slot
}

// mayRun claims a job if it may have begun before. If the job is not to run, it returns what
// becomes of the delivery.
func (t *task) mayRun() (outcome, bool) {
	slot := t.slot()
	if slot == "" || !t.mustClaim() {
		return outcome{}, true
	}
	for pause := (pauses{}); ; {
		switch t.s.claim(slot) {
		case wire.ClaimRun:
			return outcome{}, true
		case wire.ClaimDrop:
			return dropped, false
		}
		if t.isLost() || t.w.stopped.isClosed() || pause.wait(t.s.ctx) != nil {
			return outcome{requeue: true}, false
		}
	}
}

// mustClaim reports whether a job may have begun before: it was delivered before, it was fired
// again, the leader says so, or it was fired before this connection was made.
func (t *task) mustClaim() bool {
	_, asked := t.d.Headers[wire.HeaderClaim]
	op, _ := t.d.Headers[wire.HeaderOp].(string)
	epoch, _ := t.d.Headers[wire.HeaderEpoch].(int64)
	below := t.s.leader.claimBelow.Load()
	return asked || t.d.Redelivered || op == wire.OpRefired || below < 0 || epoch < below
}

// claim asks the leader whether a job may run. It returns "" if there is no answer.
func (s *session) claim(slot string) string {
	ctx, cancel := context.WithTimeout(s.ctx, askTimeout)
	defer cancel()
	var reply struct {
		Claim string `json:"claim"`
	}
	body, ok := s.ask(ctx, map[string]string{"command": wire.CommandClaim, "slot": slot, "process": s.w.identity})
	if !ok || json.Unmarshal(body, &reply) != nil {
		return ""
	}
	return reply.Claim
}
