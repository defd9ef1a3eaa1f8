package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// anyPrivate stands for the names that Queues.private returns.
const anyPrivate = "amq.gen-*"

// isForbidden reports whether the broker refused a request because a permission is missing. The
// same code refuses a queue with an exclusive consumer.
func isForbidden(err error) bool {
	var said *amqp.Error
	return errors.As(err, &said) && said.Code == amqp.AccessRefused && !strings.Contains(said.Reason, "exclusive")
}

// attempts are the attempts so far.
type attempts struct {
	ctx   context.Context //nolint:containedctx // they end with the call
	conn  *Conn
	lacks []string
	err   error // set when the connection is gone
}

func (a *attempts) try(right, name string, do func(*amqp.Channel) error) (may bool) {
	if a.err != nil {
		return false
	}
	return a.note(right, name, a.conn.request(a.ctx, do))
}

// note records the answer to an attempt, and reports whether the user has the permission.
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

// tryUse tries to read and to write. A user who may not read cannot try to write: see tryWrite.
func (a *attempts) tryUse(name, shown string) {
	if a.try("read", shown, tryRead(name)) {
		a.try("write", shown, tryWrite(name))
	}
}

// tryConfigure declares a queue with an invalid argument.
func tryConfigure(name string) func(*amqp.Channel) error {
	return declaring(name, true, false, false, amqp.Table{"x-expires": "never"})
}

// tryRead consumes with an invalid priority, so nothing is ever delivered.
func tryRead(name string) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		if err := ch.Qos(1, 0, false); err != nil { // streams need a prefetch
			return err
		}
		_, err := ch.Consume(name, "", false, false, false, false, amqp.Table{"x-priority": "none"})
		return err
	}
}

// tryWrite tries to write to what the user may read.
func tryWrite(name string) func(*amqp.Channel) error { return tryWriteFrom(name, name) }

// tryWriteFrom removes a binding that does not exist. It needs permission to read the source, too.
func tryWriteFrom(source, name string) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error { return ch.ExchangeUnbind(name, "millrace.doctor", source, false, nil) }
}

// tryWriteDefault publishes to a queue that does not exist. The broker drops the message. It
// answers only a refusal, by closing the channel, and the next request returns that.
func tryWriteDefault(ch *amqp.Channel) error {
	return unanswered(ch, func() error { return ch.Publish("", "millrace.doctor", false, false, amqp.Publishing{}) })
}
