package broker

import (
	"context"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Consumer takes messages from one queue, on its own channel. Messages that are not acknowledged
// when it ends go back to the queue.
type Consumer struct {
	conn *Conn
	ch   *amqp.Channel
	out  chan wire.Delivery
	stop chan struct{} // closed by Close
	done chan struct{}
	once sync.Once

	mu        sync.Mutex
	err       error
	cancelled bool
	left      []wire.Delivery
}

// Consume starts a consumer with at most prefetch unacknowledged messages. With exclusive, the
// broker refuses every other consumer of the queue.
func (c *Conn) Consume(ctx context.Context, queue string, prefetch int, exclusive bool) (*Consumer, error) {
	consumer, err := c.consume(ctx, queue, prefetch, exclusive, func(*amqp.Channel) error { return nil }, nil)
	if err != nil {
		return nil, fmt.Errorf("broker: consume %s: %w", queue, err)
	}
	return consumer, nil
}

// consume opens a channel, prepares it, and starts the consumer. undo reverts prepare if ctx ends
// first.
func (c *Conn) consume(ctx context.Context, queue string, prefetch int, exclusive bool, prepare func(*amqp.Channel) error, undo func(*amqp.Channel)) (*Consumer, error) {
	consumer := &Consumer{conn: c, out: make(chan wire.Delivery), stop: make(chan struct{}), done: make(chan struct{})}
	var (
		in      <-chan amqp.Delivery
		closes  = make(chan *amqp.Error, 1)
		cancels = make(chan string, 1)
	)
	ch, err := c.open(ctx, func(ch *amqp.Channel) error {
		if err := prepare(ch); err != nil {
			return queueError(queue, c.explain(err))
		}
		if err := ch.Qos(prefetch, 0, false); err != nil {
			return err
		}
		ch.NotifyClose(closes)
		ch.NotifyCancel(cancels)
		var err error
		in, err = ch.Consume(queue, "", false, exclusive, false, false, nil)
		return queueError(queue, c.explain(err))
	}, undo)
	if err != nil {
		return nil, err
	}
	consumer.ch = ch
	go consumer.run(in, closes, cancels)
	return consumer, nil
}

// run hands out deliveries until the consumer ends. Deliveries that were not taken by then go back
// to the queue, or to Left if the queue is gone.
func (c *Consumer) run(in <-chan amqp.Delivery, closes <-chan *amqp.Error, cancels <-chan string) {
	defer close(c.done)
	defer close(c.out)
	var (
		next wire.Delivery
		from = in
		to   chan wire.Delivery // nil while there is nothing to hand out
	)
	for {
		select {
		case d, open := <-from:
			from = nil
			if open {
				next, to = delivery(d), c.out
			}
		case to <- next:
			from, to = in, nil
		case _, cancelled := <-cancels:
			if cancelled {
				c.cancel(untaken(next, to != nil, in))
				return
			}
			cancels = nil
		case cause := <-closes:
			c.end(endOf("consumer", c.closing() || c.conn.isClosing(), cause))
			return
		case <-c.stop:
			c.end(endOf("consumer", true, nil))
			return
		}
	}
}

// untaken returns what the broker had sent and no reader took. The library closes in after a
// cancel.
func untaken(next wire.Delivery, any bool, in <-chan amqp.Delivery) (all []wire.Delivery) {
	if any {
		all = append(all, next)
	}
	for d := range in {
		all = append(all, delivery(d))
	}
	return all
}

// cancel ends a consumer whose queue is gone, and closes its channel.
func (c *Consumer) cancel(left []wire.Delivery) {
	c.mu.Lock()
	c.cancelled, c.left = true, left
	c.mu.Unlock()
	c.end(fmt.Errorf("broker: consumer: %w", ErrCancelled))
	if c.conn.begin() == nil {
		go func() {
			defer c.conn.work.Done()
			c.ch.Close()
		}()
	}
}

func (c *Consumer) closing() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

func (c *Consumer) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// Deliveries returns what the broker sends. The channel is closed at the end; Err then returns the
// reason.
func (c *Consumer) Deliveries() <-chan wire.Delivery { return c.out }

// Ack acknowledges a message and, with multiple, all messages before it.
func (c *Consumer) Ack(tag uint64, multiple bool) error {
	if err := c.ch.Ack(tag, multiple); err != nil {
		return fmt.Errorf("broker: acknowledge: %w: %w", ErrLost, err)
	}
	return nil
}

// Reject returns a message to the queue or, without requeue, to the queue's dead-letter exchange.
func (c *Consumer) Reject(tag uint64, requeue bool) error {
	if err := c.ch.Reject(tag, requeue); err != nil {
		return fmt.Errorf("broker: reject: %w: %w", ErrLost, err)
	}
	return nil
}

// Cancelled reports whether the broker ended the consumer, for example because its queue was
// deleted.
func (c *Consumer) Cancelled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// Left returns the messages that the broker had sent, and no reader had taken, when the broker
// ended the consumer. If the queue was deleted, there is no other copy of them.
func (c *Consumer) Left() []wire.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// Err returns why there are no more deliveries, or nil while there may be more.
func (c *Consumer) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Done is closed when the consumer has ended, for any reason, even if Deliveries has no reader.
func (c *Consumer) Done() <-chan struct{} { return c.done }

// Close ends the consumer. A second call has no effect.
func (c *Consumer) Close() error {
	c.once.Do(func() { close(c.stop) })
	return c.conn.closeChannel(c.ch, c.done)
}
