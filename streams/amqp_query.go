package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	// firstWait is how long First, Last and Fetch wait for a first record before they conclude that
	// there is none. The broker does not report that.
	firstWait = 2 * time.Second
	// quietWait is how long Last waits for another record before it concludes that it has reached
	// the end.
	quietWait = 250 * time.Millisecond

	// lateWait is the time that the client library may take to hand over a record that the broker
	// has sent.
	lateWait = 20 * time.Millisecond

	// lookTries is how many times a query is tried if its connection is lost.
	lookTries = 5

	// lastPrefetch is for Last, which may have to read a whole chunk. Fetch gets one chunk at a
	// time, because the records after the wanted one may be unreadable.
	lastPrefetch  = 200
	fetchPrefetch = 1
)

// amqpQueries answers queries such as Last and Fetch. It keeps a connection for them. Each query
// opens its own channel.
type amqpQueries struct {
	cfg      Config
	hosts    *amqpHosts
	features broker.Features
	steps    steps         // of the readers
	turn     chan struct{} // held to use the fields below
	conn     *amqpConn
	over     bool
}

func newAMQPQueries(cfg Config, hosts *amqpHosts, conn *amqpConn) *amqpQueries {
	return &amqpQueries{cfg: cfg, hosts: hosts, features: broker.FeaturesOn(conn.conn), turn: make(chan struct{}, 1), conn: conn}
}

func (q *amqpQueries) close() {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	q.over = true
	q.conn.close()
}

// alive reports whether the connection is open.
func (q *amqpQueries) alive() bool {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	return !q.conn.conn.IsClosed()
}

// get returns the connection. If it is closed, get opens a new one.
func (q *amqpQueries) get(ctx context.Context) (*amqpConn, error) {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if q.over {
		return nil, lost("the transport was closed")
	}
	if !q.conn.conn.IsClosed() {
		return q.conn, nil
	}
	q.hosts.lost(q.conn)
	c, err := q.hosts.dial(ctx, q.cfg, "asks", nil)
	if err != nil {
		return nil, err
	}
	q.conn = c
	return c, nil
}

func (q *amqpQueries) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	err = q.look(ctx, stream, question{"first", fetchPrefetch, firstWait}, func(_ *amqp.Delivery, at int64) bool {
		offset, ok = at, true
		return true
	})
	return offset, ok, err
}

// Last computes the offset if the broker reports the number of records. If not, Last waits for the
// next record, and reads on from the last chunk only if none comes. Reading on would never end in a
// stream that is written to constantly.
func (q *amqpQueries) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	if q.features.StreamDepth {
		return q.count(ctx, stream)
	}
	see := func(_ *amqp.Delivery, at int64) bool {
		offset, ok = at, true
		return false
	}
	err = q.look(ctx, stream, question{"next", fetchPrefetch, quietWait}, func(d *amqp.Delivery, at int64) bool {
		see(d, at)
		return true
	})
	if err == nil && !ok {
		err = q.look(ctx, stream, question{"last", lastPrefetch, firstWait}, see)
	}
	if s := q.steps.of(stream); isPoison(err) && s.behind(s.last()+1) {
		return s.last(), true, nil // a reader has stepped over this record
	}
	return offset, ok, err
}

// LastIsCheap is false if Last has to read the end of the stream. The record there may be one that
// the broker cannot convert, so that it closes the connection.
func (q *amqpQueries) LastIsCheap() bool { return q.features.StreamDepth }

// count returns the last offset, from the first offset and the number of records. Retention may
// delete records between the two queries, so count repeats them until the first offset is the same.
func (q *amqpQueries) count(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	before := int64(-1)
	for {
		depth, err := q.depth(ctx, stream)
		if err != nil || depth == 0 {
			return 0, false, err
		}
		first, ok, err := q.First(ctx, stream)
		if err != nil || !ok {
			return 0, false, err
		}
		if first == before {
			return first + depth - 1, true, nil
		}
		before = first
	}
}

func (q *amqpQueries) depth(ctx context.Context, stream string) (records int64, err error) {
	err = within(ctx, q.cfg.Timeout, func(ctx context.Context) error {
		c, err := q.get(ctx)
		if err != nil {
			return err
		}
		defer c.leaveIfStuck(ctx)()
		ch := &amqpChannel{conn: c, stream: stream}
		if ch.Channel, err = c.conn.Channel(); err != nil {
			return ch.explain(err)
		}
		defer ch.Close()
		queue, err := ch.QueueDeclarePassive(stream, true, false, false, false, nil)
		if err != nil {
			return ch.explain(err)
		}
		records = int64(queue.Messages)
		return nil
	})
	return records, err
}

func (q *amqpQueries) Fetch(ctx context.Context, stream string, offset int64) (record wire.Record, err error) {
	err = q.look(ctx, stream, question{offset, fetchPrefetch, firstWait}, func(d *amqp.Delivery, at int64) bool {
		if at == offset {
			record = amqpRecord(stream, at, *d)
		}
		return at >= offset
	})
	switch {
	case isPoison(err):
		return unreadable(stream, offset, offset), nil
	case err == nil && record.Stream == "":
		err = fmt.Errorf("streams: %w: %s, %d", ErrNotFound, stream, offset)
	}
	return record, err
}

func (q *amqpQueries) Next(ctx context.Context, stream string, offset int64) (next int64, err error) {
	found := false
	err = q.look(ctx, stream, question{offset, fetchPrefetch, firstWait}, func(_ *amqp.Delivery, at int64) bool {
		next, found = at, at >= offset
		return found
	})
	switch {
	case isPoison(err):
		return offset, nil
	case err == nil && !found:
		err = fmt.Errorf("streams: %w: %s, from %d on", ErrNotFound, stream, offset)
	}
	return next, err
}

// question says where in a stream to read, and how.
type question struct {
	where    any // an offset, "first", "last" or "next"
	prefetch int
	wait     time.Duration // how long to wait for a first record
}

// look consumes from q.where until see returns true or no more records come. It tries again if the
// connection is lost. After the second errPoison it concludes that the broker cannot convert a
// record. That error may also arrive instead of the answer to the subscription. Then it looks like
// any other loss.
func (q *amqpQueries) look(ctx context.Context, stream string, what question, see func(*amqp.Delivery, int64) bool) error {
	return within(ctx, q.cfg.Timeout, func(ctx context.Context) error {
		var err error
		for try, poison := 0, 0; try < lookTries && poison < 2; try++ {
			if err = q.lookOnce(ctx, stream, what, see); ctx.Err() != nil || !errors.Is(err, ErrLost) {
				break
			}
			if isPoison(err) {
				poison++
			}
		}
		return err
	})
}

func (q *amqpQueries) lookOnce(ctx context.Context, stream string, what question, see func(*amqp.Delivery, int64) bool) error {
	c, err := q.get(ctx)
	if err != nil {
		return err
	}
	defer c.leaveIfStuck(ctx)()
	ch, err := c.consume(stream, what.where, what.prefetch)
	if err != nil {
		// This node may have no replica: the next try uses another host.
		if errors.Is(err, ErrLost) && q.hosts.several() {
			c.close()
		}
		return err
	}
	defer ch.end()
	for wait := what.wait; ; wait = quietWait {
		if more, err := ch.lookOn(ctx, wait, see); !more {
			return err
		}
	}
}

// lookOn waits for one delivery, passes it to see, and acknowledges it to get more.
//
// If nothing arrives in time, lookOn sends the broker a request. The broker answers it only after
// it has sent the records that were requested before. So lookOn does not mistake a busy broker for
// the end of the stream.
func (ch *amqpChannel) lookOn(ctx context.Context, wait time.Duration, see func(*amqp.Delivery, int64) bool) (more bool, err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var d amqp.Delivery
	ok := true
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case d, ok = <-ch.deliveries:
	case <-timer.C:
		if err := ch.Qos(1, 0, false); err != nil {
			return false, ch.explain(err)
		}
		select {
		case d, ok = <-ch.deliveries:
		case <-time.After(lateWait):
			return false, nil
		}
	}
	if !ok {
		return false, ch.ended()
	}
	at, err := ch.offsetOf(d)
	if err != nil || see(&d, at) {
		return false, err
	}
	if err := d.Ack(false); err != nil {
		return false, ch.ended()
	}
	return true, nil
}
