package streams

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpChannel is a channel on which one stream is consumed.
type amqpChannel struct {
	*amqp.Channel
	conn       *amqpConn
	stream     string
	deliveries <-chan amqp.Delivery
	closed     <-chan *amqp.Error
	cancels    <-chan string
}

// consume subscribes on a new channel. Where is an offset, "first" or "last".
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

// end closes the channel alone. What still comes until the broker has heard of it is thrown away as it comes: it may be a whole chunk
// of large bodies, and the client library would collect them.
func (ch *amqpChannel) end() {
	var draining sync.WaitGroup
	draining.Go(func() {
		for range ch.deliveries {
		}
	})
	ch.Close()
	draining.Wait()
}

// errPoison is what the broker does to a connection when it fails to convert what it should deliver.
var errPoison = errors.New("the broker failed to deliver")

func isPoison(err error) bool { return errors.Is(err, errPoison) }

// ended says why the deliveries ended.
func (ch *amqpChannel) ended() error {
	select {
	case _, sent := <-ch.cancels: // when the connection dies it is closed, and nothing is sent
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

// explain says what an error means to a reader. If it only says that the channel is closed, it asks why.
func (ch *amqpChannel) explain(err error) error {
	var e *amqp.Error
	if !errors.As(err, &e) || e == nil || e.Code == amqp.ErrClosed.Code {
		e = ch.reason()
	}
	switch {
	case e == nil:
		return lost("reading %s: the channel is closed", ch.stream)
	case e.Code == amqp.NotFound && strings.Contains(e.Reason, "inaccessible"):
		return lost("reading %s: %s", ch.stream, e.Reason) // right after a restart
	case e.Code == amqp.NotFound, e.Code == amqp.PreconditionFailed && strings.Contains(e.Reason, "x-stream-offset"):
		return fmt.Errorf("streams: %w: %s", ErrNoStream, ch.stream)
	case e.Code == amqp.AccessRefused:
		return fmt.Errorf("streams: reading %s: %w: %s", ch.stream, ErrRefused, e.Reason)
	default:
		return lost("reading %s: %s (%d)", ch.stream, e.Reason, e.Code)
	}
}

// offsetOf gives a delivery's offset. A queue that is no stream has none, and must be left alone: to acknowledge would be to take.
func (ch *amqpChannel) offsetOf(d amqp.Delivery) (int64, error) {
	offset, ok := d.Headers["x-stream-offset"].(int64)
	if !ok {
		return 0, fmt.Errorf("streams: %w: %s is a queue, not a stream", ErrNoStream, ch.stream)
	}
	return offset, nil
}
