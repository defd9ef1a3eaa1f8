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

// QueueType says what kind of queue Millrace makes for jobs. A queue that exists is used as it is.
type QueueType string

// Types of queues.
const (
	QueueAuto    QueueType = "auto" // classic; quorum where that is the virtual host's default and such queues know priorities
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

// What queue.* is declared with. Clients declare classicArguments too. A quorum queue has nothing else, so that a client which declares a
// queue without arguments means the same one where quorum is the default; the rest is said by policy.
var (
	classicArguments         = amqp.Table{"x-max-priority": int32(10)}
	explicitClassicArguments = amqp.Table{"x-max-priority": int32(10), "x-queue-type": "classic"} // where another type is the default
	quorumArguments          = amqp.Table{"x-queue-type": "quorum"}
)

// EnsureQueue makes sure that queue.<name> exists and gets what is published for it, both by clients (jobs.direct) and by Millrace
// (jobs.route). A queue that exists is used as it is. A refusal is a *QueueError and costs the connection nothing.
func (c *Conn) EnsureQueue(ctx context.Context, name string) error {
	queue := wire.QueuePrefix + name
	if err := wire.CheckQueueName(name); err != nil {
		return &QueueError{Queue: queue, Reason: ReasonName, Err: err} // RabbitMQ would close the connection
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

// declareJobQueue makes a job queue of the type that was asked for. Which type is the virtual host's default, the broker says when it
// refuses priorities: no other place knows it for sure.
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

// typeThatRefused is the type of queue that has no x-max-priority, if that is why the broker refused it; else it is empty.
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
	// A client deleted jobs.direct, which is a client's right.
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

// longestRefusal is what RabbitMQ says about a queue, beside the names of queue and virtual host; only of one that is another connection's
// alone it says more.
const longestRefusal = "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue '' in vhost '': received the value '10' of type " +
	"'signedint' but current is none"

// checkRefusable refuses a name about which the broker may have to say more than fits into an answer. RabbitMQ 4 cuts that to 255
// characters where 255 bytes fit, fails to send it, and closes the connection; and any client can have Millrace ask about any name.
func (c *Conn) checkRefusable(queue string) error {
	room := shortString - len(longestRefusal) - len(c.VHost())
	ascii := strings.IndexFunc(queue+c.VHost(), func(r rune) bool { return r > unicode.MaxASCII }) < 0
	if !c.Features().RefusalsOverflow || len(queue) <= room || ascii {
		return nil
	}
	return &QueueError{Queue: queue, Reason: ReasonName,
		Err: fmt.Errorf("the name has %d bytes, and not all are ASCII: this broker refuses at most %d such bytes without closing the connection", len(queue), room)}
}

// queueRequest is a request about one queue, on a channel of its own.
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

// QueueExists tells whether a queue, by its full name, is there. One that is there but cannot be reached is an error.
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

// QueueDepth is how many messages wait in a queue, without those that are being worked on, and how many consumers it has.
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

// DeclareWitness makes a queue that lives as long as the broker runs, and no longer. ErrRefused says that this broker makes none;
// RabbitMQ, where its settings forbid them, ends the connection with that answer.
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

// DeleteIdle deletes a queue, by its full name, that has neither consumers nor messages. It uses a
// connection of its own: RabbitMQ ends one that asks this of a quorum queue, and the error is
// ErrNoConditions then.
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

// DeleteQueue deletes a queue, by its full name; ifUnused and ifEmpty keep one that has consumers or messages, and must not be asked of a
// quorum queue: see DeleteIdle. Deleting what does not exist does no harm.
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
