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

// lockArguments are the arguments of jobs.leader as a quorum queue. RabbitMQ before 4.3 accepts and
// ignores the last one. Without it, later versions keep the consumer of a lost node active for 60
// seconds.
var lockArguments = amqp.Table{
	"x-queue-type":                    "quorum",
	"x-single-active-consumer":        true,
	"x-message-ttl":                   int32(wire.CommandTTL.Milliseconds()),
	"x-quorum-initial-group-size":     int32(5), // fewer if there are fewer nodes
	"x-consumer-disconnected-timeout": int32(wire.LeaderWait.Milliseconds()),
}

// Lock is a connection's claim to lead: a consumer of the queue jobs.leader.
//
// On RabbitMQ, jobs.leader is a quorum queue with a single active consumer. Claims wait in line. A
// connection has the lock when its Inbox delivers the first message.
//
// On LavinMQ one node leads all others. There, jobs.leader is an exclusive queue with an exclusive
// consumer, and the connection has the lock from the beginning.
//
// Inbox and Publisher share one channel. The lock passes on when that channel has ended. By then
// the broker has handled everything that was published on it. If Inbox was cancelled, the queue was
// deleted, and another connection may have the lock.
type Lock struct {
	Inbox     *Consumer
	Publisher *Publisher
	Scout     *Publisher // for probes; its channel may end without harm
	Exclusive bool       // the connection already has the lock

	conn  *Conn
	pings *amqp.Channel // a channel of its own, so that pings do not wait behind fires
}

// Lock claims the leader's lock. It returns ErrLocked if another connection has the lock as its
// exclusive queue, and ErrForeignLock if jobs.leader is a queue that no sidecar declared.
func (c *Conn) Lock(ctx context.Context) (*Lock, error) {
	lock := &Lock{conn: c, Exclusive: c.features.ExclusiveLock}
	err := lock.claim(ctx)
	if err == nil {
		return lock, nil
	}
	lock.release()
	if isLocked(err) {
		err = ErrLocked
	}
	return nil, fmt.Errorf("broker: lock %s: %w", wire.LeaderInbox, err)
}

func (l *Lock) claim(ctx context.Context) (err error) {
	claim := l.claimQuorum
	if l.Exclusive {
		claim = l.claimExclusive
	}
	if err := claim(ctx); err != nil {
		return err
	}
	if l.pings, err = l.conn.open(ctx, func(*amqp.Channel) error { return nil }, nil); err != nil {
		return err
	}
	l.Publisher = l.conn.publisherOn(l.Inbox.ch, false)
	return nil
}

// release closes what a failed claim has opened.
func (l *Lock) release() {
	if l.Inbox != nil {
		_ = l.Inbox.Close()
	}
	if l.Scout != nil {
		_ = l.Scout.Close()
	}
}

// claimExclusive claims LavinMQ's lock. LavinMQ gives an exclusive queue to both of two connections
// that declare it at the same moment, but an exclusive consumer to only one. It deletes the queue
// when either connection ends, so the winner may lose its lock.
func (l *Lock) claimExclusive(ctx context.Context) (err error) {
	declare := declaring(wire.LeaderInbox, false, false, true, nil)
	undo := func(ch *amqp.Channel) { _, _ = ch.QueueDelete(wire.LeaderInbox, false, false, false) }
	if l.Inbox, err = l.consumeLock(ctx, true, declare, undo); err != nil {
		return err
	}
	l.Scout, err = l.conn.Publisher(ctx)
	return err
}

// claimQuorum consumes RabbitMQ's lock, on a channel that is known to the leader's streams.
func (l *Lock) claimQuorum(ctx context.Context) error {
	if err := l.declareLock(ctx); err != nil {
		return err
	}
	var (
		failed error
		beside sync.WaitGroup
	)
	beside.Go(func() { l.Scout, failed = l.introduced(ctx, wire.Journal, wire.Gated) })
	inbox, err := l.consumeLock(ctx, false, func(ch *amqp.Channel) error {
		return introduce(ch, append([]string{wire.Journal}, wire.EntryStreams...)...)
	}, nil)
	if errors.Is(err, errNotIntroduced) {
		inbox, err = l.consumeLock(ctx, false, func(*amqp.Channel) error { return nil }, nil)
	}
	beside.Wait()
	l.Inbox = inbox
	return errors.Join(err, failed)
}

func (l *Lock) consumeLock(ctx context.Context, exclusive bool, prepare func(*amqp.Channel) error, undo func(*amqp.Channel)) (*Consumer, error) {
	return l.conn.consume(ctx, wire.LeaderInbox, lockPrefetch, exclusive, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		return prepare(ch)
	}, undo)
}

// introduced opens a publisher on a channel that is known to the streams. If one of them cannot be
// used on this node, the publisher is an ordinary one.
func (l *Lock) introduced(ctx context.Context, streams ...string) (*Publisher, error) {
	pub, err := l.conn.publisher(ctx, false, func(ch *amqp.Channel) error { return introduce(ch, streams...) })
	if errors.Is(err, errNotIntroduced) {
		return l.conn.Publisher(ctx)
	}
	return pub, err
}

// errNotIntroduced is returned when a stream cannot be consumed on this node, for example because
// it has no replica there.
var errNotIntroduced = errors.New("a stream cannot be consumed")

// introduce makes a channel known to the streams to which the leader publishes, before the leader
// has the lock. RabbitMQ does that when a channel first uses a stream. While the first node of a
// cluster is frozen, it takes seven seconds per stream and blocks the channel. When the leader of a
// stream changes, RabbitMQ notifies the channels that are known to it.
func introduce(ch *amqp.Channel, streams ...string) error {
	if err := ch.Qos(1, 0, false); err != nil { // streams need a prefetch
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
			// Records may arrive meanwhile. The broker ends a channel that does not acknowledge.
			for r := range records {
				_ = r.Ack(false)
			}
		}()
		if err := ch.Cancel(tag, false); err != nil {
			return err
		}
	}
	return nil
}

// declareLock declares the quorum queue. It returns ErrForeignLock if a queue with other arguments
// exists: without a single active consumer, two sidecars could lead.
func (l *Lock) declareLock(ctx context.Context) error {
	err := l.conn.request(ctx, declaring(wire.LeaderInbox, true, false, false, lockArguments))
	if hasCode(err, amqp.PreconditionFailed) {
		return fmt.Errorf("%w: %w", ErrForeignLock, err)
	}
	return err
}

// Ping sends a message with an id to jobs.leader, and does not wait for its confirm. The sender
// recognises the message by the id. Ping and RenewPings must not be called concurrently.
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

// RenewPings moves pings to a new channel. RabbitMQ 3.10 silently loses what a channel publishes to
// a quorum queue if the queue's leader died when the channel first used it.
func (l *Lock) RenewPings(ctx context.Context) error {
	pings, err := l.conn.open(ctx, func(*amqp.Channel) error { return nil }, nil)
	if err != nil {
		return fmt.Errorf("broker: open a channel for pings: %w", err)
	}
	old := l.pings
	l.pings = pings
	go func() { _ = old.Close() }() // waits for the broker's answer or the end of the connection
	return nil
}

// isLocked reports whether another connection has the queue or its exclusive consumer. The code is
// not enough, because a missing permission is a 403 too.
func isLocked(err error) bool {
	var answer *amqp.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == amqp.ResourceLocked ||
		answer.Code == amqp.AccessRefused && strings.Contains(answer.Reason, "in exclusive use")
}
