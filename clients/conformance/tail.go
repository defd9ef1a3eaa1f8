package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/tidwall/gjson"
)

// tail reads a stream from its beginning, as long as the trial lasts, whether or not the broker
// restarts. So a scenario can ask for the records often, and gets them immediately.
type tail struct {
	t      *trial
	stream string

	mu      sync.Mutex
	bodies  [][]byte // without a leader's barriers
	headers []amqp.Table
	next    int64     // the offset after the last record
	reading bool      // there is a consumer
	changed time.Time // when the last record came, or reading began
}

// tail returns the reader of a stream. The first call starts it.
func (t *trial) tail(stream string) *tail {
	if tl := t.tails[stream]; tl != nil {
		return tl
	}
	tl := &tail{t: t, stream: stream}
	t.tails[stream] = tl
	ctx, cancel := context.WithCancel(t.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tl.run(ctx)
	}()
	t.cleanup(func() {
		cancel()
		<-done
	})
	return tl
}

// subscribeAgain is how long a tail waits for a record before it subscribes again where it was.
// RabbitMQ can forget a reader of a stream that was just created, or whose leader was just killed.
const subscribeAgain = 15 * time.Second

func (tl *tail) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = tl.t.channel(func(ch *amqp.Channel) error { return tl.read(ctx, ch) })
		select {
		// The stream does not exist yet, or the connection was lost.
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (tl *tail) read(ctx context.Context, ch *amqp.Channel) error {
	if err := ch.Qos(1000, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(tl.stream, "", false, false, false, false, amqp.Table{"x-stream-offset": tl.begin()})
	if err != nil {
		return err
	}
	defer tl.end()
	for {
		select {
		case <-time.After(subscribeAgain):
			return fmt.Errorf("nothing of %s has come for %s", tl.stream, subscribeAgain)
		case d, open := <-deliveries:
			if !open {
				return fmt.Errorf("reading %s ended", tl.stream)
			}
			tl.add(d)
			if err := d.Ack(false); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (tl *tail) begin() int64 {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.reading, tl.changed = true, time.Now()
	return tl.next
}

func (tl *tail) end() {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.reading = false
}

// add adds a record that was not read before. A broker begins with the chunk that has the offset,
// so earlier records may come again.
func (tl *tail) add(d amqp.Delivery) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	offset, _ := d.Headers["x-stream-offset"].(int64)
	if offset < tl.next {
		return
	}
	tl.next, tl.changed = offset+1, time.Now()
	if gjson.GetBytes(d.Body, "type").String() != "barrier" {
		tl.bodies, tl.headers = append(tl.bodies, d.Body), append(tl.headers, d.Headers)
	}
}

// seen returns the records so far.
func (t *trial) seen(stream string) [][]byte {
	tl := t.tail(stream)
	tl.mu.Lock()
	defer tl.mu.Unlock()
	return tl.bodies[:len(tl.bodies):len(tl.bodies)]
}

// traceparents waits for n records about a job in a stream. It returns the traceparents of all that
// have come, with "" for a record without one.
func (t *trial) traceparents(stream, jid string, n int) (all []string) {
	t.eventually(func() bool {
		all = t.tail(stream).traceparents(jid)
		return len(all) >= n
	}, "%s has %d records of %s", stream, n, jid)
	return all
}

func (tl *tail) traceparents(jid string) (all []string) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	for i, body := range tl.bodies {
		if gjson.GetBytes(body, "jid").String() == jid {
			found, _ := tl.headers[i]["traceparent"].(string)
			all = append(all, found)
		}
	}
	return all
}

// calm is how long no record may come before the stream counts as read to its end.
const calm = 700 * time.Millisecond

// records returns all records of a stream, once no more come.
func (t *trial) records(stream string) [][]byte {
	tl, asked := t.tail(stream), time.Now()
	t.eventually(func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		return tl.reading && time.Since(tl.changed) > calm && time.Since(asked) > calm
	}, "%s has been read to its end", stream)
	return t.seen(stream)
}
