package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// lockPrefetch is how many messages of jobs.leader the broker sends ahead of their acknowledgement.
const lockPrefetch = 256

// lockArguments are those of jobs.leader where it is a quorum queue. RabbitMQ before 4.3 accepts and ignores the last one. Later
// versions would keep the consumer of a lost node active for 60 seconds without it.
var lockArguments = amqp.Table{
	"x-queue-type":                    "quorum",
	"x-single-active-consumer":        true,
	"x-message-ttl":                   int32(wire.CommandTTL.Milliseconds()),
	"x-quorum-initial-group-size":     int32(5), // RabbitMQ takes as many nodes as there are
	"x-consumer-disconnected-timeout": int32(wire.LeaderWait.Milliseconds()),
}

// Lock is a connection's claim to lead: a consumer of the queue jobs.leader.
//
// On RabbitMQ that is a quorum queue with a single active consumer, and the claim waits in line: its connection has the lock once
// Inbox delivers a message. LavinMQ has one node that leads all others. There it is an exclusive queue, consumed exclusively, and the
// connection has the lock from the beginning.
//
// Inbox and Publisher share one channel. The lock passes on when that channel has ended, and the broker has handled by then all that
// was published on it. A Consumer that was cancelled says that the queue was deleted: another connection may have the lock.
type Lock struct {
	Inbox     *Consumer
	Publisher *Publisher
	Exclusive bool // the connection has the lock already

	conn  *Conn
	pings *amqp.Channel // not the one that Inbox and Publisher share: its messages would wait behind fires
}

// Lock claims the leader's lock. ErrLocked says that another connection has it exclusively, ErrForeignLock that jobs.leader is a
// queue which no sidecar has declared.
func (c *Conn) Lock(ctx context.Context) (*Lock, error) {
	lock, err := c.lock(ctx)
	switch {
	case isLocked(err):
		return nil, fmt.Errorf("broker: lock %s: %w", wire.LeaderInbox, ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("broker: lock %s: %w", wire.LeaderInbox, err)
	}
	return lock, nil
}

func (c *Conn) lock(ctx context.Context) (*Lock, error) {
	exclusive := c.features.ExclusiveLock
	declare, undo := func(*amqp.Channel) error { return nil }, (func(*amqp.Channel))(nil)
	if exclusive {
		// LavinMQ gives an exclusive queue to both of two connections that declare it in the same moment, and an exclusive consumer
		// to only one. It deletes the queue when either connection ends: the winner may lose its lock.
		declare = func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
			return err
		}
		undo = func(ch *amqp.Channel) { _, _ = ch.QueueDelete(wire.LeaderInbox, false, false, false) }
	} else if err := c.declareLock(ctx); err != nil {
		return nil, err
	}
	inbox, err := c.consume(ctx, wire.LeaderInbox, lockPrefetch, exclusive, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		return declare(ch)
	}, undo)
	if err != nil {
		return nil, err
	}
	pings, err := c.open(ctx, func(*amqp.Channel) error { return nil }, nil)
	if err != nil {
		_ = inbox.Close()
		return nil, err
	}
	return &Lock{Inbox: inbox, Publisher: c.publisherOn(inbox.ch, false), Exclusive: exclusive, conn: c, pings: pings}, nil
}

// declareLock makes the quorum queue, or checks that the one that exists is the same. A queue without a single active consumer would
// let two sidecars lead.
func (c *Conn) declareLock(ctx context.Context) error {
	err := c.request(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(wire.LeaderInbox, true, false, false, false, lockArguments)
		return err
	})
	if hasCode(err, amqp.PreconditionFailed) {
		return fmt.Errorf("%w: %w", ErrForeignLock, err)
	}
	return err
}

// Ping sends a message to jobs.leader, with an id by which the sender knows it again, and waits for no confirm. Ping and RenewPings
// must not be called concurrently.
func (l *Lock) Ping(id string) error {
	msg, err := publishing(wire.LeaderPing(id), l.conn.user, l.conn.amqp.Config.FrameSize)
	if err != nil {
		return err
	}
	if err := l.pings.Publish("", wire.LeaderInbox, false, false, msg); err != nil {
		return fmt.Errorf("broker: ping %s: %w: %w", wire.LeaderInbox, ErrLost, err)
	}
	return nil
}

// RenewPings has pings sent on another channel. RabbitMQ 3.10 loses what a channel publishes to a
// quorum queue if the queue's leader died when the channel first used it, and says nothing.
func (l *Lock) RenewPings(ctx context.Context) error {
	pings, err := l.conn.open(ctx, func(*amqp.Channel) error { return nil }, nil)
	if err != nil {
		return fmt.Errorf("broker: open a channel for pings: %w", err)
	}
	old := l.pings
	l.pings = pings
	go func() { _ = old.Close() }() // it waits for the broker's answer, or for the end of the connection
	return nil
}

// DeclareProbes makes the exclusive queue that FollowProbes consumes. While it stands, its connection does.
func (c *Conn) DeclareProbes(ctx context.Context, queue string) error {
	err := c.request(ctx, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, false, true, true, false, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("broker: declare %s: %w", queue, err)
	}
	return nil
}

// isLocked reports whether another connection has the queue, or its exclusive consumer. A missing permission is also a 403.
func isLocked(err error) bool {
	var answer *amqp.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == amqp.ResourceLocked ||
		answer.Code == amqp.AccessRefused && strings.Contains(answer.Reason, "in exclusive use")
}
