package broker

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// call runs fn, which blocks in the library, on its own goroutine. It returns the result of fn, or
// ctx's error if ctx ends first.
//
// call does not interrupt fn, because no other request may follow on its channel before the answer.
// undo gets a value that fn returns after ctx has ended. fn returns when the connection ends, at
// the latest.
func call[T any](ctx context.Context, c *Conn, fn func() (T, error), undo func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := c.begin(); err != nil {
		return none, err
	}
	answer, gone := make(chan result), make(chan struct{})
	go func() {
		defer c.work.Done()
		value, err := fn()
		select {
		case answer <- result{value, c.explain(err)}:
		case <-gone:
			if err == nil && undo != nil {
				undo(value)
			}
		}
	}()
	select {
	case r := <-answer:
		return r.value, r.err
	case <-ctx.Done():
		close(gone)
		return none, ctx.Err()
	}
}

// explain adds ErrLost to an error that the end of the connection caused, so that the caller does
// not take it for the answer to a request.
func (c *Conn) explain(err error) error {
	switch {
	case err == nil || errors.Is(err, ErrLost):
		return err
	case errors.Is(err, amqp.ErrClosed) || c.amqp.IsClosed():
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// open opens a channel and prepares it. undo reverts prepare if ctx ends first.
func (c *Conn) open(ctx context.Context, prepare func(*amqp.Channel) error, undo func(*amqp.Channel)) (*amqp.Channel, error) {
	return call(ctx, c, func() (*amqp.Channel, error) {
		ch, err := c.amqp.Channel()
		if err != nil {
			return nil, err
		}
		if err := prepare(ch); err != nil {
			ch.Close()
			return nil, err
		}
		return ch, nil
	}, func(ch *amqp.Channel) {
		if undo != nil {
			undo(ch)
		}
		ch.Close()
	})
}

// ask runs fn with its own channel and returns the result. A refusal by the broker closes only that
// channel. fn may still run when ask has returned, so it must not write to anything that the caller
// reads.
func ask[T any](ctx context.Context, c *Conn, fn func(*amqp.Channel) (T, error)) (T, error) {
	return call(ctx, c, func() (T, error) {
		ch, err := c.amqp.Channel()
		if err != nil {
			var none T
			return none, err
		}
		defer ch.Close()
		return fn(ch)
	}, nil)
}

// request is ask for a function that returns only an error.
func (c *Conn) request(ctx context.Context, fn func(*amqp.Channel) error) error {
	_, err := ask(ctx, c, func(ch *amqp.Channel) (struct{}, error) { return struct{}{}, fn(ch) })
	return err
}

// declaring returns a request that declares a queue.
func declaring(name string, durable, autoDelete, exclusive bool, args amqp.Table) func(*amqp.Channel) error {
	return func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(name, durable, autoDelete, exclusive, false, args)
		return err
	}
}

// unanswered runs a request that the broker answers only if it refuses it, by closing the channel.
// It returns the refusal.
func unanswered(ch *amqp.Channel, request func() error) error {
	refusals := ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := request(); err != nil {
		return err
	}
	err := ch.Qos(1, 0, false) // the broker answers this after the request, or closes the channel
	if err == nil {
		return nil
	}
	if refusal := <-refusals; refusal != nil {
		return refusal
	}
	return err
}

// closeChannel closes a channel. It waits no longer than Conn.Close would.
func (c *Conn) closeChannel(ch *amqp.Channel, done <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	// An error means that the channel ends with its connection.
	_, _ = call(ctx, c, func() (struct{}, error) { return struct{}{}, ch.Close() }, nil)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("broker: close a channel: the broker does not answer")
	}
}
