package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"time"

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
	below := t.s.claimBelow.Load()
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

// reportEnd reports that the job of a delivery has ended. It repeats that until it is confirmed,
// and returns false if the delivery is lost before.
func (t *task) reportEnd() bool {
	slot := t.slot()
	if slot == "" {
		return true
	}
	body, err := json.Marshal(map[string]any{"type": typeEnded, "slot": slot, "process": t.w.identity, "at": wire.Seconds(time.Now())})
	if err != nil {
		return true // texts and a number can be encoded
	}
	return t.publishUntilConfirmed(record(wire.JobEnds, body), func(err error) {
		t.w.cfg.Logger.Error("millrace: the broker does not take that a job has ended; it is tried again", "slot", slot, "error", err)
	})
}

// publishUntilConfirmed repeats a publish until it is confirmed, however long that takes. It gives
// up when the delivery is lost, because then the broker delivers the job again.
func (t *task) publishUntilConfirmed(m message, failed func(error)) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-t.lost:
			cancel()
		case <-t.s.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	var pause pauses
	for {
		err := t.s.pub.publish(ctx, m)
		switch {
		case err == nil:
			return true
		case errors.Is(err, errLost) || ctx.Err() != nil:
			return false
		}
		failed(err)
		if pause.wait(ctx) != nil {
			return false
		}
	}
}
