package streams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	// firstWait is how long Last and Fetch wait for a first record before they believe that there is none. The broker does not say.
	firstWait = 2 * time.Second
	// quietWait is how long nothing must come for Last to believe that it has seen the end.
	quietWait = 250 * time.Millisecond

	queryPrefetch = 200
)

// amqpQueries keeps the connection on which Last and Fetch ask, each on a channel of its own.
type amqpQueries struct {
	mu   sync.Mutex
	conn *amqpConn
	over bool
}

func (q *amqpQueries) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.conn != nil {
		q.conn.close()
	}
}

func (q *amqpQueries) get(ctx context.Context, cfg Config) (*amqpConn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return nil, lost("the transport was closed")
	}
	if q.conn == nil || q.conn.conn.IsClosed() {
		c, err := dialAMQP(ctx, cfg, nil)
		if err != nil {
			return nil, err
		}
		q.conn = c
	}
	return q.conn, nil
}

func (t *amqpTransport) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	err = t.look(ctx, stream, "last", func(d *amqp.Delivery, at int64) bool {
		if d != nil {
			offset, ok = at, true
		}
		return false
	})
	if isPoison(err) {
		if s := t.steps.of(stream); s.covers(s.last()) {
			return s.last(), true, nil
		}
	}
	return offset, ok, err
}

func (t *amqpTransport) Fetch(ctx context.Context, stream string, offset int64) (record wire.Record, err error) {
	err = t.look(ctx, stream, offset, func(d *amqp.Delivery, at int64) bool {
		if d != nil && at == offset {
			record = amqpRecord(stream, at, *d)
		}
		return at >= offset
	})
	switch {
	case isPoison(err):
		return wire.Record{Stream: stream, Offset: offset, Through: offset, Fault: "unreadable over AMQP 0-9-1"}, nil
	case err == nil && record.Stream == "":
		err = fmt.Errorf("streams: %w: %s, %d", ErrNotFound, stream, offset)
	}
	return record, err
}

// look consumes from where on until see has seen enough or nothing more comes. If the kept connection turns out to be dead, it tries
// once more; if the broker closes that one too because of what it should deliver, so be it.
func (t *amqpTransport) look(ctx context.Context, stream string, where any, see func(*amqp.Delivery, int64) bool) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := t.lookOnce(ctx, stream, where, see)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil || attempt == 2 || !errors.Is(err, ErrLost) {
			return err
		}
	}
}

func (t *amqpTransport) lookOnce(ctx context.Context, stream string, where any, see func(*amqp.Delivery, int64) bool) error {
	c, err := t.ask.get(ctx, t.cfg)
	if err != nil {
		return err
	}
	ch, err := c.conn.Channel()
	if err != nil {
		return amqpError(stream, err)
	}
	defer ch.Close()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	cancels := ch.NotifyCancel(make(chan string, 1))
	if err := ch.Qos(queryPrefetch, 0, false); err != nil {
		return amqpError(stream, err)
	}
	deliveries, err := ch.Consume(stream, "", false, false, false, false, amqp.Table{"x-stream-offset": where})
	if err != nil {
		return amqpError(stream, err)
	}
	wait := firstWait
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return whyClosed(stream, closed, cancels)
			}
			at, isStream := d.Headers["x-stream-offset"].(int64)
			if !isStream {
				return fmt.Errorf("streams: %w: %s is a queue, not a stream", ErrNoStream, stream)
			}
			if see(&d, at) {
				return nil
			}
			if err := d.Ack(false); err != nil {
				return whyClosed(stream, closed, cancels)
			}
			wait = quietWait
		}
	}
}
