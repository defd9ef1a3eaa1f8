package localbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errExited = errors.New("it exited")

// probeStream is a stream that shows that streams work. It exists only during a start. If a start
// is interrupted, the next one deletes it.
const probeStream = "localbroker.probe"

// startLimit is the time limit of a start if the context has no deadline.
const startLimit = 2 * time.Minute

// probeLimit is the time limit of one try.
const probeLimit = 5 * time.Second

// waitReady waits until AMQP, the management API and streams all answer.
func (b *Broker) waitReady(ctx context.Context, node *process) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	// It is cheap to watch the port that opens last. The listeners of RabbitMQ's plugins open at
	// the end of a start.
	last := b.ports.stream
	if !b.HasErlang() {
		last = b.ports.management
	}
	err := poll(ctx, node.done, func(ctx context.Context) error { return dial(ctx, b.seat.host, last) })
	switch {
	case err != nil:
	case b.seat.shared: // in a cluster, streams depend on the other nodes too
		err = probeMember(ctx, node.done, b.AMQPURL(), b.ManagementURL())
	default:
		err = probe(ctx, node.done, b.AMQPURL(), b.ManagementURL())
	}
	if err != nil {
		return fmt.Errorf("localbroker: starting the node in %s: %w; it wrote:\n%s", b.dir, err, logTail(b.dir))
	}
	return nil
}

// WaitReady waits until a broker can be used that this package has not started: AMQP and the
// management API answer, and a stream can be declared, written and read.
func WaitReady(ctx context.Context, amqpURL, managementURL string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := probe(ctx, nil, amqpURL, managementURL); err != nil {
		return fmt.Errorf("localbroker: waiting for the broker: %w", err)
	}
	return nil
}

func probe(ctx context.Context, exited <-chan struct{}, amqpURL, managementURL string) error {
	err := poll(ctx, exited, func(ctx context.Context) error { return probeManagement(ctx, managementURL) })
	if err != nil {
		return err
	}
	return poll(ctx, exited, func(ctx context.Context) error { return probeStreams(ctx, amqpURL) })
}

// probeMember waits until a node of a cluster can be used for everything that needs no other node.
func probeMember(ctx context.Context, exited <-chan struct{}, amqpURL, managementURL string) error {
	err := poll(ctx, exited, func(ctx context.Context) error { return probeManagement(ctx, managementURL) })
	if err != nil {
		return err
	}
	return poll(ctx, exited, func(context.Context) error {
		conn, err := amqp.DialConfig(amqpURL, amqp.Config{Dial: amqp.DefaultDial(probeLimit)})
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func probeManagement(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/overview", http.NoBody)
	if err != nil {
		return err
	}
	req.Close = true // leaves no open connection behind
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("management API: %s", resp.Status)
	}
	return nil
}

// probeStreams declares, writes, reads and deletes a stream. In the first tenths of a second of a
// node's life that fails in several ways (404, 541, a nack), so a node is not ready before it
// succeeds.
func probeStreams(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(probeLimit)})
	if err != nil {
		return err
	}
	defer conn.Close()
	// A broker that stops answering must not hold up the probe for longer.
	defer context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDelete(probeStream, false, false, false); err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(probeStream, true, false, false, false, amqp.Table{"x-queue-type": "stream"}); err != nil {
		return err
	}
	if err := writeAndRead(ctx, ch); err != nil {
		return err
	}
	_, err = ch.QueueDelete(probeStream, false, false, false)
	return err
}

func writeAndRead(ctx context.Context, ch *amqp.Channel) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", probeStream, false, false, amqp.Publishing{Body: []byte("up?")})
	if err != nil {
		return err
	}
	if ok, err := confirm.WaitContext(ctx); err != nil {
		return fmt.Errorf("writing a stream: %w", err)
	} else if !ok {
		return errors.New("writing a stream: refused")
	}
	if err := ch.Qos(1, 0, false); err != nil {
		return err
	}
	records, err := ch.Consume(probeStream, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	if err != nil {
		return err
	}
	select {
	case _, ok := <-records:
		if !ok {
			return errors.New("reading a stream: the channel was closed")
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("reading a stream: %w", ctx.Err())
	}
}
