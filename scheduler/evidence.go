package scheduler

import (
	"context"
	"strings"

	"github.com/millrace-jobs/millrace/wire"
)

// dropOldWitness deletes the witness of an older version: a queue that is not durable, which keeps
// a RabbitMQ 4.3 with its defaults from starting.
func (l *leadership) dropOldWitness(ctx context.Context) {
	if l.oldWitness == "" {
		return
	}
	if err := l.conn.Queues().Delete(ctx, l.oldWitness, true, true); err != nil && ctx.Err() == nil {
		l.s.log.Warn("scheduler: cannot delete the witness of an older version", "queue", l.oldWitness, "error", err)
	}
}

// decision says which fires of earlier epochs arrived.
type decision struct {
	verdict verdict
	proof   proof
}

// checkWitness passes on whether the witness stands. If that cannot be said yet, the epoch
// continues and learns it later.
func (l *leadership) checkWitness(ctx context.Context) error {
	known := l.s.entries.State().Witness
	if !l.conn.Features().OneNodeServes && strings.HasPrefix(known, wire.WitnessPrefix) {
		l.oldWitness = known
	}
	l.proof = l.s.readProof(ctx, l.witness.alone(ctx), beginWithin) // this sidecar may have stood by for days
	if l.proof.unread {
		l.newer.read(l)
	}
	v, err := l.witness.check(ctx, known)
	if err != nil {
		return err
	}
	d := decision{v, l.proof}
	if d.verdict == stands && d.proof.unread {
		d.verdict = undecided
	}
	l.core.witnessed(d.verdict, d.proof)
	if d.verdict == undecided {
		l.beside(func(ctx context.Context) { l.decide(ctx, known, d.proof) })
	}
	return nil
}

// decide finds out, beside the loop, what could not be said when the epoch began.
func (l *leadership) decide(ctx context.Context, known string, p proof) {
	v, err := l.witness.wait(ctx, known)
	if err != nil {
		v = gone
	}
	if v == stands && p.unread {
		p = l.s.readProof(ctx, l.witness.alone(ctx), listQueuesWithin)
	}
	select {
	case l.decided <- decision{v, p}:
	case <-ctx.Done():
	}
}
