package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// MayConfigure reports whether the user may declare what Millrace needs. It declares the exchange
// jobs.dead, as every sidecar does.
func (c *Conn) MayConfigure(ctx context.Context) (bool, error) {
	err := c.request(ctx, exchange{name: wire.ExchangeDead, kind: amqp.ExchangeFanout}.declare)
	if errors.Is(err, ErrLost) || ctx.Err() != nil {
		return false, err
	}
	return !isForbidden(err), nil // where it differs, AssertWanted says so
}

// isForbidden reports whether the broker refused a request because a right is missing. To a queue with
// an exclusive consumer it gives the same code.
func isForbidden(err error) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == amqp.AccessRefused && !strings.Contains(said.Reason, "exclusive")
}

// Lacks tries to configure, write and read things of the given names, to write the default exchange,
// and to have queues of the broker's naming. It lists what the user may not, as "write job_journal".
//
// Each request is one that the broker refuses in any case, and whose rights it checks first. So
// nothing changes; the broker logs the refusals.
func (c *Conn) Lacks(ctx context.Context, names []string) (lacks []string, err error) {
	a := attempts{ctx: ctx, conn: c}
	for _, name := range names {
		a.try("configure", name, tryConfigure(name))
	}
	private, err := c.privateQueue(ctx)
	a.note("configure", anyPrivate, err)
	a.try("write", cmp.Or(c.features.DefaultExchange, "the default exchange"), tryWriteDefault)
	for _, name := range names {
		a.tryUse(name, name)
	}
	if err == nil {
		a.tryUse(private, anyPrivate)
	}
	return a.lacks, a.err
}

// anyPrivate stands for the names of privateQueue.
const anyPrivate = "amq.gen-*"

// attempts is what was tried so far.
type attempts struct {
	ctx   context.Context //nolint:containedctx // they end with the call
	conn  *Conn
	lacks []string
	err   error // the connection is gone
}

func (a *attempts) try(right, name string, do func(*amqp.Channel) error) (may bool) {
	if a.err != nil {
		return false
	}
	return a.note(right, name, a.conn.request(a.ctx, do))
}

// note takes the answer to an attempt.
func (a *attempts) note(right, name string, err error) (may bool) {
	switch {
	case errors.Is(err, ErrLost) || a.ctx.Err() != nil:
		a.err = fmt.Errorf("broker: try to %s %s: %w", right, name, err)
		return false
	case isForbidden(err):
		a.lacks = append(a.lacks, right+" "+name)
		return false
	}
	return true
}

// tryUse tries to read a thing and to write it. Who may not read it cannot try to write it.
func (a *attempts) tryUse(name, shown string) {
	if a.try("read", shown, tryRead(name)) {
		a.try("write", shown, tryWrite(name))
	}
}

// tryConfigure declares a queue with an argument that no queue can have.
func tryConfigure(name string) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-expires": "never"})
		return err
	}
}

// tryRead consumes with a priority that no consumer can have: nothing is ever delivered.
func tryRead(name string) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		if err := ch.Qos(1, 0, false); err != nil { // no stream can be consumed without
			return err
		}
		_, err := ch.Consume(name, "", false, false, false, false, amqp.Table{"x-priority": "none"})
		return err
	}
}

// tryWrite takes away a binding that does not exist. It needs the right to read the source, too.
func tryWrite(name string) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error { return ch.ExchangeUnbind(name, "millrace.doctor", name, false, nil) }
}

// tryWriteDefault publishes to a queue that does not exist. The broker drops the message, and answers
// only what ends the channel: the next request learns of it.
func tryWriteDefault(ch *amqp.Channel) error {
	return unanswered(ch, func() error { return ch.Publish("", "millrace.doctor", false, false, amqp.Publishing{}) })
}
