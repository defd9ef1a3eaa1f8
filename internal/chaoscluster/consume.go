package main

import (
	"context"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
)

// dialLimit limits a connection attempt: a frozen node accepts and never answers.
const dialLimit = 3 * time.Second

// dial connects to any node. It tries the given one first.
func (w *world) dial(first int) (*amqp.Connection, error) {
	var err error
	for i := range w.nodes.Nodes {
		var conn *amqp.Connection
		conn, err = w.dialNode((first + i) % len(w.nodes.Nodes))
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (w *world) dialNode(node int) (*amqp.Connection, error) {
	return amqp.DialConfig(w.nodes.Nodes[node].AMQPURL()+w.vhost, amqp.Config{Dial: amqp.DefaultDial(dialLimit), Heartbeat: 2 * time.Second})
}

// dialEvery is how often a new attempt to connect begins while earlier ones hang.
const dialEvery = 250 * time.Millisecond

// dialSoon connects to the first node that answers. While a node is frozen, others may hang with
// it. A client that waits for each node in turn would connect too late when the cluster serves
// again.
func (w *world) dialSoon(ctx context.Context, first int) (*amqp.Connection, error) {
	connected := make(chan *amqp.Connection)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for node := first; ; node++ {
		w.all.Go(func() {
			conn, err := w.dialNode(node % len(w.nodes.Nodes))
			if err != nil {
				return
			}
			select {
			case connected <- conn:
			case <-ctx.Done():
				_ = conn.CloseDeadline(time.Now().Add(dialLimit))
			}
		})
		select {
		case conn := <-connected:
			return conn, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(dialEvery):
		}
	}
}

// consume takes jobs from a queue until ctx ends, through any node that answers.
func (w *world) consume(ctx context.Context, queue string, preferred int) {
	for ctx.Err() == nil {
		w.consumeOnce(ctx, queue, preferred)
		preferred = rand.IntN(len(w.nodes.Nodes)) //nolint:gosec // no secret
		_ = pause.For(ctx, 100*time.Millisecond)
	}
}

// consumedAt returns the queues with a consumer that is connected to a node. A node that is cut off
// does not inform its clients.
func (w *world) consumedAt(node int) (queues []string) {
	to, err := url.Parse(w.nodes.Nodes[node].AMQPURL())
	if err != nil {
		return nil
	}
	for _, q := range w.queues {
		if at, ok := w.consumers.Load(q); ok && at == to.Host {
			queues = append(queues, q)
		}
	}
	return queues
}

func (w *world) consumeOnce(ctx context.Context, queue string, preferred int) {
	conn, err := w.dialSoon(ctx, preferred)
	if err != nil {
		return
	}
	// A plain close would wait for a frozen node.
	defer func() { _ = conn.CloseDeadline(time.Now().Add(dialLimit)) }()
	defer context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(dialLimit)) })()
	ch, err := conn.Channel()
	if err != nil || ch.Qos(200, 0, false) != nil {
		return
	}
	deliveries, err := ch.Consume(w.jobs.named(queue), "", false, false, false, false, nil)
	if err != nil {
		return
	}
	w.consumers.Store(queue, conn.RemoteAddr().String())
	for d := range deliveries {
		w.jobs.arrive(w.jobs.jidOf(d), d.Headers, d.Redelivered)
		if d.Ack(false) != nil {
			return
		}
	}
}

// feed publishes entries at a rate, each some time before it is due, until it is stopped.
type feed struct {
	w      *world
	queues []string
	next   time.Time // when the next entry is due
	serial int
}

// lookahead is how long before its time an entry is published. So jobs fall due while nothing can
// be published.
const lookahead = 10 * time.Second

// run publishes until ctx ends.
func (f *feed) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := f.w.dial(rand.IntN(len(f.w.nodes.Nodes))) //nolint:gosec // no secret
		if err == nil {
			f.publish(ctx, conn)
			_ = conn.CloseDeadline(time.Now().Add(dialLimit))
		}
		_ = pause.For(ctx, 100*time.Millisecond)
	}
}

func (f *feed) publish(ctx context.Context, conn *amqp.Connection) {
	p, err := f.w.jobs.publisher(conn)
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		if p.publish(ctx, f.batch(time.Now().Add(lookahead))) != nil {
			return
		}
		_ = pause.For(ctx, 100*time.Millisecond)
	}
}

// batch returns the entries that fall due before until.
func (f *feed) batch(until time.Time) (all []entry) {
	every := time.Second / time.Duration(f.w.rate)
	for f.next.Before(until) {
		all = append(all, entry{f.w.jid(f.serial), f.queues[f.serial%len(f.queues)], f.next})
		f.serial++
		f.next = f.next.Add(every)
	}
	return all
}

// start runs the feed in the background.
func (f *feed) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { f.run(ctx) })
	return func() {
		cancel()
		all.Wait()
	}
}
