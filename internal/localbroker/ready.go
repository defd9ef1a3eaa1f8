package localbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

var errExited = errors.New("it exited")

// probeStream shows that streams work. It exists during a start only; a start that dies half way
// leaves it, and the next one deletes it.
const probeStream = "localbroker.probe"

// startLimit bounds a start when the caller's context sets no deadline.
const startLimit = 2 * time.Minute

// waitReady waits until AMQP, the management API and streams all answer.
func (b *Broker) waitReady(ctx context.Context, node *process) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	// Watching the port of streams first is cheap: the plugins' listeners open at the end of a start.
	probes := []func(context.Context) error{
		func(ctx context.Context) error { return dial(ctx, b.ports.stream) },
		b.probeManagement,
		b.probeStreams,
	}
	for _, probe := range probes {
		if err := poll(ctx, node, probe); err != nil {
			return fmt.Errorf("localbroker: starting the node in %s: %w; it wrote:\n%s", b.dir, err, logTail(b.dir))
		}
	}
	return nil
}

func (b *Broker) probeManagement(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.ManagementURL()+"/api/overview", http.NoBody)
	if err != nil {
		return err
	}
	req.Close = true // no connection stays open behind us
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
// node's life that fails in several ways (404, 541, a nack), which is why it is tried.
func (b *Broker) probeStreams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := amqp.DialConfig(b.AMQPURL(), amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.SetDeadline(time.Now().Add(5 * time.Second)) // the handshake's; amqp091 lifts it
		}
		return c, err
	}})
	if err != nil {
		return err
	}
	defer conn.Close()
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
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		return fmt.Errorf("writing a stream: confirmed %v: %w", ok, err)
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
