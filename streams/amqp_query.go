package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	// firstWait is how long First, Last and Fetch wait for a first record before they believe that there is none. The broker does not say.
	firstWait = 2 * time.Second
	// quietWait is how long nothing must come for Last to believe that it has seen the end.
	quietWait = 250 * time.Millisecond

	// lateWait is for what the broker has sent and the client library has not handed over yet.
	lateWait = 20 * time.Millisecond

	// lookTries is how often a question is asked whose connection dies.
	lookTries = 5

	// lastPrefetch is for Last, which may have a chunk before it. Fetch takes one chunk at a time, since what comes after the record
	// that it wants may be unreadable.
	lastPrefetch  = 200
	fetchPrefetch = 1
)

// amqpQueries keeps the connection on which Last and Fetch ask, each on a channel of its own.
type amqpQueries struct {
	hosts *amqpHosts
	turn  chan struct{} // held to look at what follows
	conn  *amqpConn
	over  bool
}

func newAMQPQueries(hosts *amqpHosts, conn *amqpConn) *amqpQueries {
	return &amqpQueries{hosts: hosts, turn: make(chan struct{}, 1), conn: conn}
}

func (q *amqpQueries) close() {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	q.over = true
	q.conn.close()
}

// alive reports whether the connection has not ended.
func (q *amqpQueries) alive() bool {
	q.turn <- struct{}{}
	defer func() { <-q.turn }()
	return !q.conn.conn.IsClosed()
}

// get gives the connection, a new one if it is dead.
func (q *amqpQueries) get(ctx context.Context, cfg Config) (*amqpConn, error) {
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
	c, err := q.hosts.dial(ctx, cfg, "asks", nil)
	if err != nil {
		return nil, err
	}
	q.conn = c
	return c, nil
}

func (t *amqpTransport) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	err = t.look(ctx, stream, question{"first", fetchPrefetch, firstWait}, func(_ *amqp.Delivery, at int64) bool {
		offset, ok = at, true
		return true
	})
	return offset, ok, err
}

// Last counts where the broker tells how many records there are, and reads on from the last chunk elsewhere. There a stream that is always
// written to would never end: what comes next tells.
func (t *amqpTransport) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	if t.features.StreamDepth {
		return t.count(ctx, stream)
	}
	see := func(_ *amqp.Delivery, at int64) bool {
		offset, ok = at, true
		return false
	}
	err = t.look(ctx, stream, question{"next", fetchPrefetch, quietWait}, func(d *amqp.Delivery, at int64) bool {
		see(d, at)
		return true
	})
	if err == nil && !ok {
		err = t.look(ctx, stream, question{"last", lastPrefetch, firstWait}, see)
	}
	if s := t.steps.of(stream); isPoison(err) && s.behind(s.last()+1) {
		return s.last(), true, nil // a reader has been there
	}
	return offset, ok, err
}

// LastIsCheap is false where the end has to be read: it may hold what the broker cannot deliver, and closes the connection for.
func (t *amqpTransport) LastIsCheap() bool { return t.features.StreamDepth }

// count takes the first record and how many there are. Retention may take records in between: it is asked again until it has not.
func (t *amqpTransport) count(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	before := int64(-1)
	for {
		depth, err := t.depth(ctx, stream)
		if err != nil || depth == 0 {
			return 0, false, err
		}
		first, ok, err := t.First(ctx, stream)
		if err != nil || !ok {
			return 0, false, err
		}
		if first == before {
			return first + depth - 1, true, nil
		}
		before = first
	}
}

func (t *amqpTransport) depth(ctx context.Context, stream string) (records int64, err error) {
	err = within(ctx, t.cfg.Timeout, func(ctx context.Context) error {
		c, err := t.ask.get(ctx, t.cfg)
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

func (t *amqpTransport) Fetch(ctx context.Context, stream string, offset int64) (record wire.Record, err error) {
	err = t.look(ctx, stream, question{offset, fetchPrefetch, firstWait}, func(d *amqp.Delivery, at int64) bool {
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

// question is from where on a stream is looked at.
type question struct {
	where    any // an offset, "first", "last" or "next"
	prefetch int
	wait     time.Duration // for a first record
}

// look consumes from where on until see has seen enough or nothing more comes. If the connection turns out to be dead it tries again, and
// believes the second time that the broker closes it because of what it should deliver. That may be heard in the place of the answer to
// the subscription, and is then not told from other losses.
func (t *amqpTransport) look(ctx context.Context, stream string, q question, see func(*amqp.Delivery, int64) bool) error {
	return within(ctx, t.cfg.Timeout, func(ctx context.Context) error {
		var err error
		for try, poison := 0, 0; try < lookTries && poison < 2; try++ {
			if err = t.lookOnce(ctx, stream, q, see); ctx.Err() != nil || !errors.Is(err, ErrLost) {
				break
			}
			if isPoison(err) {
				poison++
			}
		}
		return err
	})
}

func (t *amqpTransport) lookOnce(ctx context.Context, stream string, q question, see func(*amqp.Delivery, int64) bool) error {
	c, err := t.ask.get(ctx, t.cfg)
	if err != nil {
		return err
	}
	defer c.leaveIfStuck(ctx)()
	ch, err := c.consume(stream, q.where, q.prefetch)
	if err != nil {
		if errors.Is(err, ErrLost) && t.hosts.several() { // perhaps this node has no replica: the next try is on another
			c.close()
		}
		return err
	}
	defer ch.end()
	for wait := q.wait; ; wait = quietWait {
		if more, err := ch.lookOn(ctx, wait, see); !more {
			return err
		}
	}
}

// lookOn shows what is delivered within the time, and asks for more.
//
// When nothing was, the broker is made to answer a question: it does so after it has sent what was asked for before, so that a busy
// broker is not taken for the end of the stream.
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
