package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

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
	Scout     *Publisher // for probes, on a channel that may end without harm
	Exclusive bool       // the connection has the lock already

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

func (c *Conn) lock(ctx context.Context) (_ *Lock, err error) {
	lock := &Lock{conn: c, Exclusive: c.features.ExclusiveLock}
	defer func() {
		if err != nil {
			lock.release()
		}
	}()
	claim := c.claimQuorum
	if lock.Exclusive {
		claim = c.claimExclusive
	}
	if err = claim(ctx, lock); err != nil {
		return nil, err
	}
	if lock.pings, err = c.open(ctx, func(*amqp.Channel) error { return nil }, nil); err != nil {
		return nil, err
	}
	lock.Publisher = c.publisherOn(lock.Inbox.ch, false)
	return lock, nil
}

// release ends what a failed claim has opened.
func (l *Lock) release() {
	if l.Inbox != nil {
		_ = l.Inbox.Close()
	}
	if l.Scout != nil {
		_ = l.Scout.Close()
	}
}

// claimExclusive claims LavinMQ's lock. It gives an exclusive queue to both of two connections that declare it in the same moment, and an
// exclusive consumer to only one. It deletes the queue when either connection ends: the winner may lose its lock.
func (c *Conn) claimExclusive(ctx context.Context, lock *Lock) (err error) {
	declare := func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
		return err
	}
	undo := func(ch *amqp.Channel) { _, _ = ch.QueueDelete(wire.LeaderInbox, false, false, false) }
	if lock.Inbox, err = c.consumeLock(ctx, true, declare, undo); err != nil {
		return err
	}
	lock.Scout, err = c.Publisher(ctx)
	return err
}

// claimQuorum gets in line for RabbitMQ's lock, on a channel that the leader's streams know.
func (c *Conn) claimQuorum(ctx context.Context, lock *Lock) error {
	if err := c.declareLock(ctx); err != nil {
		return err
	}
	var (
		failed error
		beside sync.WaitGroup
	)
	beside.Go(func() { lock.Scout, failed = c.introduced(ctx, wire.Journal, wire.Gated) })
	inbox, err := c.consumeLock(ctx, false, func(ch *amqp.Channel) error {
		return introduce(ch, append([]string{wire.Journal}, wire.EntryStreams...)...)
	}, nil)
	if errors.Is(err, errNotIntroduced) {
		inbox, err = c.consumeLock(ctx, false, func(*amqp.Channel) error { return nil }, nil)
	}
	beside.Wait()
	lock.Inbox = inbox
	return errors.Join(err, failed)
}

func (c *Conn) consumeLock(ctx context.Context, exclusive bool, prepare func(*amqp.Channel) error, undo func(*amqp.Channel)) (*Consumer, error) {
	return c.consume(ctx, wire.LeaderInbox, lockPrefetch, exclusive, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		return prepare(ch)
	}, undo)
}

// introduced opens a publisher on a channel that these streams know, if they can be used on this node.
func (c *Conn) introduced(ctx context.Context, streams ...string) (*Publisher, error) {
	pub, err := c.publisher(ctx, false, func(ch *amqp.Channel) error { return introduce(ch, streams...) })
	if errors.Is(err, errNotIntroduced) {
		return c.Publisher(ctx)
	}
	return pub, err
}

// errNotIntroduced says that a stream cannot be used on this node, as where it has no replica there.
var errNotIntroduced = errors.New("a stream cannot be consumed")

// introduce makes a channel known to the streams to which the leader publishes, before it has the lock: RabbitMQ does that when a channel
// first uses a stream. While the first node of a cluster is frozen, that takes seven seconds per stream, and the channel does nothing else
// meanwhile. RabbitMQ notifies a channel that is known when the stream's leader changes.
func introduce(ch *amqp.Channel, streams ...string) error {
	if err := ch.Qos(1, 0, false); err != nil { // no stream can be consumed without
		return err
	}
	for _, stream := range streams {
		tag := "introduction to " + stream
		records, err := ch.Consume(stream, tag, false, false, false, false, amqp.Table{"x-stream-offset": "next"})
		if err != nil {
			var refusal *amqp.Error
			if errors.As(err, &refusal) && refusal.Server {
				return fmt.Errorf("%w: %w", errNotIntroduced, err)
			}
			return err
		}
		go func() {
			for r := range records { // what is published in this moment; the broker ends a channel that keeps a record for long
				_ = r.Ack(false)
			}
		}()
		if err := ch.Cancel(tag, false); err != nil {
			return err
		}
	}
	return nil
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
