//go:build plugin

package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// counter counts what an application publishes and receives. It knows AMQP only: nothing of
// Millrace's decides what it counts.
type counter struct {
	mu        sync.Mutex
	published int
	received  map[string]int
}

func newCounter() *counter { return &counter{received: map[string]int{}} }

func (c *counter) publish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.published++
}

func (c *counter) receive(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received[id]++
}

// figures returns how many messages were published, how many of these have not arrived, and how
// many have arrived more than once.
func (c *counter) figures() (published, missing, repeated int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.received {
		if times > 1 {
			repeated++
		}
	}
	return c.published, c.published - len(c.received), repeated
}

// load is an application that publishes and receives through each node until it is stopped.
type load struct {
	messages, jobs *counter
	cancel         context.CancelFunc
	running        errgroup.Group
}

const jobQueue = "queue.counted"

// startLoad publishes plain messages through each node, and schedules jobs through the first one.
// Its workers take the jobs from the last one.
func startLoad(t *testing.T, nodes []*node) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{messages: newCounter(), jobs: newCounter(), cancel: cancel}
	t.Cleanup(cancel)
	for i, n := range nodes {
		l.running.Go(func() error { return l.exchange(ctx, n, i) })
	}
	work(t, nodes[len(nodes)-1], l.jobs)
	l.running.Go(func() error { return schedule(ctx, nodes[0], l.jobs, 5*time.Second) })
	return l
}

// stop ends the load. No connection may have failed, and everything must have arrived once.
func (l *load) stop(t *testing.T, n *node) {
	t.Helper()
	l.cancel()
	require.NoError(t, l.running.Wait())
	awaitAll(t, n, "messages", l.messages)
	awaitAll(t, n, "jobs", l.jobs)
}

// awaitAll waits until all has arrived, and then for more.
func awaitAll(t *testing.T, n *node, what string, c *counter) {
	t.Helper()
	n.eventually(t, func() bool { _, missing, _ := c.figures(); return missing == 0 }, what+" arrive")
	time.Sleep(5 * time.Second)
	published, missing, repeated := c.figures()
	t.Logf("%d %s were published, %d are missing, and %d came twice", published, what, missing, repeated)
	require.Greater(t, published, 100)
	require.Zero(t, missing)
	require.Zero(t, repeated)
}

// channel opens a channel on a connection of its own.
func channel(n *node) (*amqp.Connection, *amqp.Channel, error) {
	conn, err := amqp.Dial(n.AMQPURL())
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, ch, nil
}

// exchange publishes messages through a node, and receives them there.
func (l *load) exchange(ctx context.Context, n *node, node int) error {
	conn, ch, err := channel(n)
	if err != nil {
		return err
	}
	defer conn.Close()
	queue, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		return err
	}
	messages, err := ch.Consume(queue.Name, "", true, true, false, false, nil)
	if err != nil {
		return err
	}
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprint(node, "-", i)
		if err := ch.Publish("", queue.Name, true, false, amqp.Publishing{Body: []byte(id)}); err != nil {
			return err
		}
		l.messages.publish()
		select {
		case message, ok := <-messages:
			if !ok {
				return errors.New("the channel was closed")
			}
			l.messages.receive(string(message.Body))
		case <-time.After(within):
			return errors.New("a message did not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// schedule schedules jobs until ctx ends. Each is due within a time.
func schedule(ctx context.Context, n *node, jobs *counter, due time.Duration) error {
	conn, ch, err := channel(n)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for i := 0; ctx.Err() == nil; i++ {
		jid := fmt.Sprintf("counted-%d-%d", time.Now().UnixNano(), i)
		at := float64(time.Now().Add(rand.N(due)).UnixMilli()) / 1000
		body, err := json.Marshal(map[string]any{"type": "scheduled_job", "jid": jid, "scheduled_at": at,
			"job": map[string]any{"jid": jid, "class": "Counted", "args": []any{}, "queue": "counted"}})
		if err != nil {
			return err
		}
		confirm, err := ch.PublishWithDeferredConfirm("", "scheduled_jobs", true, false, amqp.Publishing{Body: body, DeliveryMode: amqp.Persistent})
		if err != nil {
			return err
		}
		jobs.publish()
		if !confirm.Wait() {
			return errors.New("the broker refused a job")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// work takes jobs from the queue until the test ends.
func work(t *testing.T, n *node, jobs *counter) {
	t.Helper()
	conn, ch, err := channel(n)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = ch.QueueDeclare(jobQueue, true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	messages, err := ch.Consume(jobQueue, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for message := range messages {
			var job struct{ JID string }
			if json.Unmarshal(message.Body, &job) == nil {
				jobs.receive(job.JID)
			}
		}
	}()
}
