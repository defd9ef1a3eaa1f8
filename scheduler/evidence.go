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

// checkWitness passes on whether the witness stands. If that cannot be said yet, the epoch
// continues and learns it later.
func (l *leadership) checkWitness(ctx context.Context) error {
	known := l.s.entries.State().Witness
	if !l.conn.Features().OneNodeServes && strings.HasPrefix(known, wire.WitnessPrefix) {
		l.oldWitness = known
	}
	l.proof = l.s.readProof(ctx, l.witness.alone(ctx)) // this sidecar may have stood by for days
	v, err := l.witness.check(ctx, known)
	if err != nil {
		return err
	}
	l.core.witnessed(v, l.proof)
	if v == undecided {
		l.beside(func(ctx context.Context) {
			v, err := l.witness.wait(ctx, known)
			if err != nil {
				v = gone
			}
			select {
			case l.decided <- v:
			case <-ctx.Done():
			}
		})
	}
	return nil
}
