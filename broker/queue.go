package broker

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Arguments of queue.*. Clients declare classicArguments too. A quorum queue has only its type, so
// that a client can declare the same queue without arguments where quorum is the default. Policies
// set the rest.
var (
	classicArguments = amqp.Table{"x-max-priority": int32(10)}
	// For a virtual host whose default is another type.
	explicitClassicArguments = amqp.Table{"x-max-priority": int32(10), "x-queue-type": "classic"}
	quorumArguments          = amqp.Table{"x-queue-type": "quorum"}
)

// Queues are the queues of a virtual host.
type Queues struct{ conn *Conn }

// Queues returns the queues of the virtual host, as this connection reaches them.
func (c *Conn) Queues() Queues { return Queues{c} }

// Ensure makes sure that queue.<name> exists and is bound to jobs.direct, for jobs of clients,
// and to jobs.route, for jobs of Millrace. It uses an existing queue as it is. A refusal is a
// *QueueError and does not end the connection.
func (q Queues) Ensure(ctx context.Context, name string) error {
	if err := q.EnsureRouted(ctx, name); err != nil {
		return err
	}
	return q.bindDirect(ctx, wire.QueuePrefix+name, name)
}

// EnsureRouted is Ensure for a governed queue, which is not bound to jobs.direct.
func (q Queues) EnsureRouted(ctx context.Context, name string) error {
	queue := wire.QueuePrefix + name
	if err := wire.CheckQueueName(name); err != nil {
		// RabbitMQ would close the connection over this name.
		return &QueueError{Queue: queue, Reason: ReasonName, Err: err}
	}
	_, _, err := q.Depth(ctx, queue)
	if reasonOf(err) == ReasonMissing {
		err = q.DeclareAs(ctx, queue, q.conn.queueType)
	}
	if err != nil {
		return err
	}
	return q.bindTo(ctx, wire.ExchangeRoute, queue, name)
}

// DeclareAs declares a job queue of a type, by its full name. The broker refuses that if the queue
// exists and has another type.
//
// Which type is the virtual host's default follows from the broker's refusal of priorities, because
// nothing else shows it for sure.
func (q Queues) DeclareAs(ctx context.Context, queue string, of QueueType) error {
	declare := func(args amqp.Table) error { return q.request(ctx, queue, declaring(queue, true, false, false, args)) }
	if of == QueueQuorum {
		if err := q.conn.features.CheckQueueType(QueueQuorum); err != nil {
			return &QueueError{Queue: queue, Reason: ReasonRefused, Err: err}
		}
		return declare(quorumArguments)
	}
	err := declare(classicArguments)
	byDefault := typeThatRefused(err)
	switch {
	case byDefault == "":
		return err
	case byDefault == string(QueueQuorum) && of != QueueClassic && q.conn.features.QuorumPriorities:
		return declare(quorumArguments)
	}
	return declare(explicitClassicArguments)
}

var refusedPriority = regexp.MustCompile(`invalid arg 'x-max-priority' .* of queue type rabbit_(\w+)_queue`)

// typeThatRefused returns the type of queue that has no x-max-priority, if that is why the broker
// refused it. Otherwise it returns "".
func typeThatRefused(err error) string {
	var answer *amqp.Error
	if !errors.As(err, &answer) || answer.Code != amqp.PreconditionFailed {
		return ""
	}
	if named := refusedPriority.FindStringSubmatch(answer.Reason); named != nil {
		return named[1]
	}
	return ""
}

func (q Queues) bindTo(ctx context.Context, exchange, queue, name string) error {
	return q.request(ctx, queue, func(ch *amqp.Channel) error { return ch.QueueBind(queue, name, exchange, false, nil) })
}

// bindDirect binds a queue to jobs.direct.
func (q Queues) bindDirect(ctx context.Context, queue, name string) error {
	err := q.bindTo(ctx, wire.ExchangeDirect, queue, name)
	if reasonOf(err) != ReasonMissing {
		return err
	}
	// A client has deleted jobs.direct, as clients may.
	if err := q.conn.request(ctx, direct.declare); err != nil {
		return fmt.Errorf("broker: declare %s: %w", direct.name, err)
	}
	return q.bindTo(ctx, wire.ExchangeDirect, queue, name)
}

func reasonOf(err error) string {
	var refusal *QueueError
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return ""
}

// longestRefusal is RabbitMQ's longest refusal of a queue, without the names of queue and virtual
// host. Only the refusal of another connection's exclusive queue is longer.
const longestRefusal = "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue '' in vhost '': received the value '10' of type " +
	"'signedint' but current is none"

// checkRefusable refuses a name if the broker's refusal of it may not fit into an answer. RabbitMQ
// 4 cuts the text to 255 characters, where 255 bytes fit. It then fails to send the answer, and
// closes the connection. Any client can make Millrace ask about any name.
func (q Queues) checkRefusable(queue string) error {
	room := wire.MaxShort - len(longestRefusal) - len(q.conn.vhost)
	ascii := strings.IndexFunc(queue+q.conn.vhost, func(r rune) bool { return r > unicode.MaxASCII }) < 0
	if !q.conn.features.RefusalsOverflow || len(queue) <= room || ascii {
		return nil
	}
	return &QueueError{Queue: queue, Reason: ReasonName,
		Err: fmt.Errorf("the name has %d bytes, and not all are ASCII: this broker refuses at most %d such bytes without closing the connection", len(queue), room)}
}

// request runs a request about one queue on its own channel.
func (q Queues) request(ctx context.Context, queue string, fn func(*amqp.Channel) error) error {
	if err := q.checkRefusable(queue); err != nil {
		return err
	}
	_, err := onQueue(ctx, q.conn, queue, func(ch *amqp.Channel) (struct{}, error) { return struct{}{}, fn(ch) })
	return err
}

// Exists reports whether a queue exists, by its full name. It returns an error if the queue
// exists and cannot be reached.
func (q Queues) Exists(ctx context.Context, fullName string) (bool, error) {
	_, _, err := q.Depth(ctx, fullName)
	switch reasonOf(err) {
	case ReasonMissing:
		return false, nil
	case ReasonExclusive:
		return true, nil
	}
	return err == nil, err
}

// Depth returns how many messages wait in a queue, without unacknowledged ones, and how many
// consumers it has.
func (q Queues) Depth(ctx context.Context, fullName string) (messages, consumers int, err error) {
	if err := q.checkRefusable(fullName); err != nil {
		return 0, 0, err
	}
	queue, err := onQueue(ctx, q.conn, fullName, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(fullName, true, false, false, false, nil)
	})
	return queue.Messages, queue.Consumers, err
}

// DeleteIdle deletes a queue, by its full name, that has neither consumers nor messages. It uses
// its own connection, because RabbitMQ ends the connection that asks this about a quorum queue.
// DeleteIdle then returns ErrNoConditions.
func DeleteIdle(ctx context.Context, cfg Config, name string) error {
	conn, err := Dial(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	err = conn.Queues().Delete(ctx, name, true, true)
	if errors.Is(err, ErrLost) && (hasCode(err, amqp.NotImplemented) || hasCode(conn.Err(), amqp.NotImplemented)) {
		return fmt.Errorf("broker: delete %s: %w", name, ErrNoConditions)
	}
	return err
}

// Delete deletes a queue, by its full name. ifUnused keeps a queue that has consumers, ifEmpty
// one that has messages. Neither may be set for a quorum queue: see DeleteIdle. It is no error if
// the queue does not exist.
func (q Queues) Delete(ctx context.Context, name string, ifUnused, ifEmpty bool) error {
	err := q.request(ctx, name, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, ifUnused, ifEmpty, false)
		return err
	})
	if reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}

// private declares a queue that the broker deletes with the connection, and returns its name.
func (q Queues) private(ctx context.Context) (string, error) {
	return ask(ctx, q.conn, func(ch *amqp.Channel) (string, error) {
		declared, err := ch.QueueDeclare("", false, true, true, false, nil)
		return declared.Name, err
	})
}

// onQueue runs a request about one queue on its own channel.
func onQueue[T any](ctx context.Context, c *Conn, name string, do func(*amqp.Channel) (T, error)) (T, error) {
	found, err := ask(ctx, c, do)
	if err = queueError(name, err); err != nil && reasonOf(err) == "" {
		err = fmt.Errorf("broker: queue %q: %w", name, err)
	}
	return found, err
}
