package streams

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpChannel is a channel that consumes one stream.
type amqpChannel struct {
	*amqp.Channel
	conn       *amqpConn
	stream     string
	deliveries <-chan amqp.Delivery
	closed     <-chan *amqp.Error
	cancels    <-chan string
}

// consume subscribes on a new channel. where is an offset, "first", "last" or "next".
func (c *amqpConn) consume(stream string, where any, prefetch int) (*amqpChannel, error) {
	ch := &amqpChannel{conn: c, stream: stream}
	raw, err := c.conn.Channel()
	if err != nil {
		return nil, ch.explain(err)
	}
	ch.Channel = raw
	ch.closed = raw.NotifyClose(make(chan *amqp.Error, 1))
	ch.cancels = raw.NotifyCancel(make(chan string, 1))
	if err := ch.subscribe(where, prefetch); err != nil {
		err = ch.explain(err)
		raw.Close()
		return nil, err
	}
	return ch, nil
}

func (ch *amqpChannel) subscribe(where any, prefetch int) (err error) {
	if err = ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	ch.deliveries, err = ch.Consume(ch.stream, "", false, false, false, false, amqp.Table{"x-stream-offset": where})
	return err
}

// end closes only the channel. It discards the deliveries that arrive before the broker has handled
// the close. They may be a whole chunk of large bodies, and the client library would buffer them.
func (ch *amqpChannel) end() {
	var draining sync.WaitGroup
	draining.Go(func() {
		for range ch.deliveries {
		}
	})
	ch.Close()
	draining.Wait()
}

// errPoison is returned when the broker closes the connection because it cannot convert a record.
var errPoison = errors.New("the broker failed to deliver")

func isPoison(err error) bool { return errors.Is(err, errPoison) }

// ended returns the reason why the deliveries ended.
func (ch *amqpChannel) ended() error {
	select {
	case _, sent := <-ch.cancels: // closed without a value when the connection is lost
		if sent {
			return cancelled(ch.stream)
		}
	default:
	}
	e := ch.reason()
	if e != nil && e.Server && e.Code == amqp.InternalError {
		return lost("reading %s: %w: %s (%d)", ch.stream, errPoison, e.Reason, e.Code)
	}
	return ch.explain(e)
}

func (ch *amqpChannel) reason() *amqp.Error {
	if ch.closed != nil {
		if e := receive(ch.closed); e != nil {
			return e
		}
	}
	return ch.conn.reason()
}

// explain converts an AMQP error to an error of this package. If err only says that the channel is
// closed, explain looks up the reason.
func (ch *amqpChannel) explain(err error) error {
	var e *amqp.Error
	if !errors.As(err, &e) || e == nil || e.Code == amqp.ErrClosed.Code {
		e = ch.reason()
	}
	switch {
	case e == nil:
		return lost("reading %s: the channel is closed", ch.stream)
	case e.Code == amqp.NotFound && strings.Contains(e.Reason, "inaccessible"):
		return lost("reading %s: %s", ch.stream, e.Reason) // happens right after a restart
	case e.Code == amqp.NotFound, e.Code == amqp.PreconditionFailed && strings.Contains(e.Reason, "x-stream-offset"):
		return fmt.Errorf("streams: %w: %s", ErrNoStream, ch.stream)
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("streams: reading %s: %w: %s", ch.stream, ErrRefused, e.Reason)
	default:
		return lost("reading %s: %s (%d)", ch.stream, e.Reason, e.Code)
	}
}

// offsetOf returns the offset of a delivery. A message of a queue that is not a stream has none. It
// must not be acknowledged, because that would remove it from the queue.
func (ch *amqpChannel) offsetOf(d amqp.Delivery) (int64, error) {
	offset, ok := d.Headers["x-stream-offset"].(int64)
	if !ok {
		return 0, fmt.Errorf("streams: %w: %s is a queue, not a stream", ErrNoStream, ch.stream)
	}
	return offset, nil
}
