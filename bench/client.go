package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// plain is a client without Millrace: amqp091-go as any program uses it.
type plain struct {
	conn *amqp.Connection
	ch   *amqp.Channel
}

func dial(v *vhost) (*plain, error) {
	conn, err := amqp.Dial(v.amqpURL)
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &plain{conn, ch}, nil
}

// product returns the name and version of the broker.
func product(address string) (string, error) {
	conn, err := amqp.Dial(address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return fmt.Sprint(conn.Properties["product"], " ", conn.Properties["version"]), nil
}

func (p *plain) close() { _ = p.conn.Close() }

// window is how many publishes may be unconfirmed. Millrace has the same limit.
const window = 1024

// publisher publishes with confirms, up to a window of unconfirmed messages.
type publisher struct {
	*plain
	confirms <-chan amqp.Confirmation
	open     int
}

func newPublisher(v *vhost) (*publisher, error) {
	p, err := dial(v)
	if err != nil {
		return nil, err
	}
	if err := p.ch.Confirm(false); err != nil {
		p.close()
		return nil, err
	}
	return &publisher{plain: p, confirms: p.ch.NotifyPublish(make(chan amqp.Confirmation, window))}, nil
}

// publish sends one message. If the window is full, it waits for one confirm, and takes all that
// have arrived.
func (p *publisher) publish(exchange, key string, m amqp.Publishing) error {
	if p.open == window {
		if err := p.await(); err != nil {
			return err
		}
	}
	p.open++
	return p.ch.Publish(exchange, key, false, false, m)
}

func (p *publisher) await() error {
	c, open := <-p.confirms
	for {
		if !open {
			return errors.New("the channel was closed")
		}
		if !c.Ack {
			return fmt.Errorf("publish %d was refused", c.DeliveryTag)
		}
		p.open--
		select {
		case c, open = <-p.confirms:
		default:
			return nil
		}
	}
}

// drain waits until everything is confirmed.
func (p *publisher) drain() error {
	for p.open > 0 {
		if err := p.await(); err != nil {
			return err
		}
	}
	return nil
}

// arrival is one job that a consumer received.
type arrival struct {
	jid string
	at  time.Time
}

// consumer takes jobs from a queue and records when each arrived.
type consumer struct {
	*plain
	arrivals <-chan arrival
}

// prefetch is how many jobs the consumer may hold, and the most that it acknowledges together.
const prefetch = 500

// consume starts to take jobs from a queue. It buffers up to want arrivals.
func consume(v *vhost, queue string, want int) (*consumer, error) {
	p, err := dial(v)
	if err != nil {
		return nil, err
	}
	arrivals := make(chan arrival, want)
	c := &consumer{plain: p, arrivals: arrivals}
	if err := p.ch.Qos(prefetch, 0, false); err != nil {
		p.close()
		return nil, err
	}
	jobs, err := p.ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		p.close()
		return nil, err
	}
	go func() {
		defer close(arrivals)
		for d := range jobs {
			arrivals <- arrival{d.MessageId, time.Now()}
			if d.Ack(false) != nil {
				return
			}
		}
	}()
	return c, nil
}

// take returns the next n arrivals. It fails if they do not arrive in time.
func (c *consumer) take(ctx context.Context, n int, within time.Duration) ([]arrival, error) {
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	all := make([]arrival, 0, n)
	for len(all) < n {
		select {
		case a, open := <-c.arrivals:
			if !open {
				return nil, errors.New("the consumer was cut off")
			}
			all = append(all, a)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, fmt.Errorf("%d of %d jobs came within %v", len(all), n, within)
		}
	}
	return all, nil
}

// filled waits until a queue holds n jobs, and returns when that was.
func (p *plain) filled(ctx context.Context, queue string, n int, within time.Duration) (time.Time, error) {
	err := wait(ctx, within, fmt.Sprintf("%s holds %d jobs", queue, n), func() (bool, error) {
		q, err := p.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return q.Messages >= n, err
	})
	return time.Now(), err
}
