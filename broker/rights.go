package broker

import (
	"cmp"
	"context"
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// MayConfigure reports whether the user may declare what Millrace needs. It declares the exchange
// jobs.dead, as every sidecar does.
func (t Topology) MayConfigure(ctx context.Context) (bool, error) {
	err := t.conn.request(ctx, exchange{name: wire.ExchangeDead, kind: amqp.ExchangeFanout}.declare)
	if errors.Is(err, ErrLost) || ctx.Err() != nil {
		return false, err
	}
	return !isForbidden(err), nil // AssertWanted reports an exchange that differs
}

// Lacks returns the permissions that the user does not have, such as "write job_journal". It checks
// configure, write and read for the given names, write for the default exchange, and the use of a
// queue whose name the broker generates.
//
// For each name it sends requests that the broker refuses in any case, after it has checked the
// permission. So nothing changes, except that the broker logs the refusals.
func (t Topology) Lacks(ctx context.Context, names []string) (lacks []string, err error) {
	a := attempts{ctx: ctx, conn: t.conn}
	for _, name := range names {
		a.try("configure", name, tryConfigure(name))
	}
	private, err := t.conn.Queues().private(ctx)
	a.note("configure", anyPrivate, err)
	a.try("write", cmp.Or(t.conn.features.DefaultExchange, "the default exchange"), tryWriteDefault)
	for _, name := range names {
		a.tryUse(name, name)
	}
	if err == nil {
		a.tryUse(private, anyPrivate)
	}
	return a.lacks, a.err
}

// LacksWrite returns the exchanges to which the user may not write. Nothing changes, as in Lacks.
// The exchange jobs.direct must exist.
func (t Topology) LacksWrite(ctx context.Context, exchanges []string) (lacks []string, err error) {
	a := attempts{ctx: ctx, conn: t.conn}
	for _, name := range exchanges {
		if !a.try("write", name, tryWriteFrom(wire.ExchangeDirect, name)) && a.err == nil {
			lacks = append(lacks, name)
		}
	}
	return lacks, a.err
}
