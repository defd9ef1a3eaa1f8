//go:build plugin

package plugintest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// prefetched is how many messages the application may have before it acknowledges one.
const prefetched = 100

// delayedLoad is an application that publishes to a delayed exchange, and receives. It connects
// again when a connection or channel ends. A message that the broker has not confirmed may arrive
// or not.
type delayedLoad struct {
	count   int
	over    time.Duration // how long it takes to publish them
	longest time.Duration // the longest delay

	nodes               []*node
	publisher, consumer sync.WaitGroup
	stop                context.CancelFunc // of the publisher

	mu        sync.Mutex
	due       map[string]time.Time // of all that were published
	confirmed map[string]bool
	came      map[string]int
	times     []time.Time // of all that came
	early     int
}

// delayedName is the name of the exchange and of the queue.
const delayedName = "postponed"

// start starts the application. The test ends it.
func (l *delayedLoad) start(t *testing.T, nodes []*node) {
	t.Helper()
	a := nodes[0].application(t)
	a.declare(t, delayedName, "direct")
	_, err := a.QueueDeclare(delayedName, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	require.NoError(t, err)
	require.NoError(t, a.QueueBind(delayedName, "key", delayedName, false, nil))
	l.nodes, l.due, l.confirmed, l.came = nodes, map[string]time.Time{}, map[string]bool{}, map[string]int{}
	ctx, end := context.WithCancel(context.Background())
	publishing, stop := context.WithCancel(ctx)
	l.stop = stop
	t.Cleanup(func() {
		end()
		l.consumer.Wait()
		l.publisher.Wait()
	})
	l.consumer.Go(func() { l.again(ctx, l.consume) })
	l.publisher.Go(func() { l.again(publishing, l.publish) })
}

// arrive waits until all confirmed messages have arrived, and then for more. It returns how many
// came again. None may be early.
func (l *delayedLoad) arrive(t *testing.T) (twice int) {
	t.Helper()
	l.nodes[0].eventually(t, func() bool { return l.missing() == 0 }, "all delayed messages arrive")
	time.Sleep(10 * time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.came {
		twice += n - 1
	}
	t.Logf("%d delayed messages were confirmed, %d were not; none is missing, %d came again, and %d came early",
		len(l.confirmed), len(l.due)-len(l.confirmed), twice, l.early)
	require.Zero(t, l.early)
	return twice
}

// again connects to some node, and runs a function there, until the function returns nil or ctx
// ends.
func (l *delayedLoad) again(ctx context.Context, run func(context.Context, *amqp.Channel) error) {
	for ctx.Err() == nil {
		if l.once(ctx, run) == nil {
			return
		}
		time.Sleep(often)
	}
}

func (l *delayedLoad) once(ctx context.Context, run func(context.Context, *amqp.Channel) error) error {
	conn, ch, err := channel(l.nodes[rand.IntN(len(l.nodes))])
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return run(ctx, ch)
}

// publish publishes messages in batches until there are enough.
func (l *delayedLoad) publish(ctx context.Context, ch *amqp.Channel) error {
	const batch = 20
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for {
		confirms := map[string]*amqp.DeferredConfirmation{}
		for range batch {
			id, delay, enough := l.next()
			if enough {
				return nil
			}
			p := amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Headers: amqp.Table{"x-delay": delay.Milliseconds()}, Body: []byte(id)}
			confirm, err := ch.PublishWithDeferredConfirm(delayedName, "key", false, false, p)
			if err != nil {
				return err
			}
			confirms[id] = confirm
		}
		for id, confirm := range confirms {
			waiting, done := context.WithTimeout(ctx, 20*time.Second)
			ok, err := confirm.WaitContext(waiting)
			done()
			if err != nil || !ok {
				return errors.Join(err, errors.New("not confirmed"))
			}
			l.mu.Lock()
			l.confirmed[id] = true
			l.mu.Unlock()
		}
		time.Sleep(l.over * batch / time.Duration(l.count))
	}
}

// next returns the name of the next message, and how long it waits.
func (l *delayedLoad) next() (id string, delay time.Duration, enough bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, delay = strconv.Itoa(len(l.due)), rand.N(l.longest).Truncate(time.Millisecond)
	if len(l.due) == l.count {
		return "", 0, true
	}
	l.due[id] = time.Now().Add(delay)
	return id, delay, false
}

// consume receives until the connection fails.
func (l *delayedLoad) consume(ctx context.Context, ch *amqp.Channel) error {
	if err := ch.Qos(prefetched, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(delayedName, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		l.take(d)
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return errors.New("the channel was closed")
}

func (l *delayedLoad) take(d amqp.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.came[d.MessageId]++
	l.times = append(l.times, now)
	if now.Before(l.due[d.MessageId]) {
		l.early++
	}
}

// since counts the messages that have come since a time.
func (l *delayedLoad) since(t time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, _ := slices.BinarySearchFunc(l.times, t, time.Time.Compare)
	return len(l.times) - at
}

// comes waits until messages come, and for a moment more. It ends if all have come.
func (l *delayedLoad) comes(t *testing.T) {
	t.Helper()
	distinct := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.came) }
	was := distinct()
	l.nodes[0].eventually(t, func() bool { return distinct() >= min(was+50, l.count-50) }, "messages come")
	time.Sleep(rand.N(500 * time.Millisecond))
}

// missing returns how many confirmed messages have not come.
func (l *delayedLoad) missing() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := maps.Clone(l.confirmed)
	maps.DeleteFunc(left, func(id string, _ bool) bool { return l.came[id] > 0 })
	return len(left)
}
