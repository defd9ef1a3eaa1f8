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

// QueueType is the type of queue that Millrace declares for jobs. A queue that exists is used as it
// is.
type QueueType string

// Types of queues.
const (
	// Quorum if that is the virtual host's default and has priorities. Otherwise classic.
	QueueAuto    QueueType = "auto"
	QueueClassic QueueType = "classic"
	QueueQuorum  QueueType = "quorum"
)

// CheckQueueType returns an error if this broker cannot have job queues of a type.
func (f Features) CheckQueueType(t QueueType) error {
	if t != QueueQuorum || f.QuorumPriorities {
		return nil
	}
	return fmt.Errorf("%s %s has no quorum queues with priorities, so jobs cannot be in quorum queues: use --queue-type auto or classic, "+
		"or RabbitMQ 4.3 or later", f.Product, f.Version)
}

// Arguments of queue.*. Clients declare classicArguments too. A quorum queue has only its type, so
// that a client can declare the same queue without arguments where quorum is the default. Policies
// set the rest.
var (
	classicArguments = amqp.Table{"x-max-priority": int32(10)}
	// For a virtual host whose default is another type.
	explicitClassicArguments = amqp.Table{"x-max-priority": int32(10), "x-queue-type": "classic"}
	quorumArguments          = amqp.Table{"x-queue-type": "quorum"}
)

// EnsureQueue makes sure that queue.<name> exists and is bound to jobs.direct, for jobs of clients,
// and to jobs.route, for jobs of Millrace. It uses an existing queue as it is. A refusal is a
// *QueueError and does not end the connection.
func (c *Conn) EnsureQueue(ctx context.Context, name string) error {
	queue := wire.QueuePrefix + name
	if err := wire.CheckQueueName(name); err != nil {
		// RabbitMQ would close the connection over this name.
		return &QueueError{Queue: queue, Reason: ReasonName, Err: err}
	}
	_, _, err := c.QueueDepth(ctx, queue)
	if reasonOf(err) == ReasonMissing {
		err = c.declareJobQueue(ctx, queue, c.queueType)
	}
	if err != nil {
		return err
	}
	return c.bindQueue(ctx, queue, name)
}

// declareJobQueue declares a job queue of a type. Which type is the virtual host's default follows
// from the broker's refusal of priorities, because nothing else shows it for sure.
func (c *Conn) declareJobQueue(ctx context.Context, queue string, of QueueType) error {
	declare := func(args amqp.Table) error {
		return c.queueRequest(ctx, queue, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(queue, true, false, false, false, args)
			return err
		})
	}
	if of == QueueQuorum {
		if err := c.features.CheckQueueType(QueueQuorum); err != nil {
			return &QueueError{Queue: queue, Reason: ReasonRefused, Err: err}
		}
		return declare(quorumArguments)
	}
	err := declare(classicArguments)
	byDefault := typeThatRefused(err)
	switch {
	case byDefault == "":
		return err
	case byDefault == string(QueueQuorum) && of != QueueClassic && c.features.QuorumPriorities:
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

func (c *Conn) bindQueue(ctx context.Context, queue, name string) error {
	bind := func(exchange string) error {
		return c.queueRequest(ctx, queue, func(ch *amqp.Channel) error { return ch.QueueBind(queue, name, exchange, false, nil) })
	}
	if err := bind(wire.ExchangeRoute); err != nil {
		return err
	}
	err := bind(wire.ExchangeDirect)
	if reasonOf(err) != ReasonMissing {
		return err
	}
	// A client has deleted jobs.direct, as clients may.
	if err := c.request(ctx, direct.declare); err != nil {
		return fmt.Errorf("broker: declare %s: %w", direct.name, err)
	}
	return bind(wire.ExchangeDirect)
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
func (c *Conn) checkRefusable(queue string) error {
	room := shortString - len(longestRefusal) - len(c.VHost())
	ascii := strings.IndexFunc(queue+c.VHost(), func(r rune) bool { return r > unicode.MaxASCII }) < 0
	if !c.Features().RefusalsOverflow || len(queue) <= room || ascii {
		return nil
	}
	return &QueueError{Queue: queue, Reason: ReasonName,
		Err: fmt.Errorf("the name has %d bytes, and not all are ASCII: this broker refuses at most %d such bytes without closing the connection", len(queue), room)}
}

// queueRequest runs a request about one queue on its own channel.
func (c *Conn) queueRequest(ctx context.Context, queue string, fn func(*amqp.Channel) error) error {
	if err := c.checkRefusable(queue); err != nil {
		return err
	}
	err := queueError(queue, c.request(ctx, fn))
	if err != nil && reasonOf(err) == "" {
		return fmt.Errorf("broker: queue %q: %w", queue, err)
	}
	return err
}

// QueueExists reports whether a queue exists, by its full name. It returns an error if the queue
// exists and cannot be reached.
func (c *Conn) QueueExists(ctx context.Context, fullName string) (bool, error) {
	_, _, err := c.QueueDepth(ctx, fullName)
	switch reasonOf(err) {
	case ReasonMissing:
		return false, nil
	case ReasonExclusive:
		return true, nil
	}
	return err == nil, err
}

// QueueDepth returns how many messages wait in a queue, without unacknowledged ones, and how many
// consumers it has.
func (c *Conn) QueueDepth(ctx context.Context, fullName string) (messages, consumers int, err error) {
	if err := c.checkRefusable(fullName); err != nil {
		return 0, 0, err
	}
	queue, err := ask(ctx, c, func(ch *amqp.Channel) (amqp.Queue, error) {
		return ch.QueueDeclarePassive(fullName, true, false, false, false, nil)
	})
	if err != nil {
		if err := queueError(fullName, err); reasonOf(err) != "" {
			return 0, 0, err
		}
		return 0, 0, fmt.Errorf("broker: queue %q: %w", fullName, err)
	}
	return queue.Messages, queue.Consumers, nil
}

// DeclareWitness declares a queue that lives exactly as long as the broker runs. It returns
// ErrRefused if this broker allows none. A RabbitMQ whose settings forbid them ends the connection
// with that answer.
func (c *Conn) DeclareWitness(ctx context.Context, name string) error {
	err := c.request(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, false, false, false, false, nil)
		return err
	})
	var answer *amqp.Error
	if errors.As(err, &answer) && (!errors.Is(err, ErrLost) || answer.Code == amqp.InternalError) {
		return fmt.Errorf("broker: declare %s: %w: %w", name, ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("broker: declare %s: %w", name, err)
	}
	return nil
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
	err = conn.DeleteQueue(ctx, name, true, true)
	if errors.Is(err, ErrLost) && (hasCode(err, amqp.NotImplemented) || hasCode(conn.Err(), amqp.NotImplemented)) {
		return fmt.Errorf("broker: delete %s: %w", name, ErrNoConditions)
	}
	return err
}

// DeleteQueue deletes a queue, by its full name. ifUnused keeps a queue that has consumers, ifEmpty
// one that has messages. Neither may be set for a quorum queue: see DeleteIdle. It is no error if
// the queue does not exist.
func (c *Conn) DeleteQueue(ctx context.Context, name string, ifUnused, ifEmpty bool) error {
	err := c.queueRequest(ctx, name, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, ifUnused, ifEmpty, false)
		return err
	})
	if reasonOf(err) == ReasonMissing {
		return nil
	}
	return err
}
