package main

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	native "github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"

	"github.com/millrace-jobs/millrace/wire"
)

// rawWithin limits how long reading a stream may take.
const rawWithin = 5 * time.Minute

// readRawNative reads n entries like a plain client of the stream protocol.
func readRawNative(ctx context.Context, v *vhost, n int) error {
	return readStream(ctx, v, wire.ScheduledJobs, n)
}

// readStream reads n records of a stream over the stream protocol. The default socket buffers of
// the library, 8 KiB, would make that a hundred times slower on loopback.
func readStream(ctx context.Context, v *vhost, name string, n int) error {
	host, port, err := hostPort(v.streamURL)
	if err != nil {
		return err
	}
	const buffer = 1 << 20
	env, err := stream.NewEnvironment(stream.NewEnvironmentOptions().SetHost(host).SetPort(port).SetVHost(v.name).
		SetAddressResolver(stream.AddressResolver{Host: host, Port: port}).SetReadBuffer(buffer).SetWriteBuffer(buffer))
	if err != nil {
		return err
	}
	defer env.Close()
	done, seen := make(chan struct{}), 0
	consumer, err := env.NewConsumer(name, func(stream.ConsumerContext, *native.Message) {
		if seen++; seen == n {
			close(done)
		}
	}, stream.NewConsumerOptions().SetOffset(stream.OffsetSpecification{}.First()))
	if err != nil {
		return err
	}
	defer consumer.Close()
	ctx, cancel := context.WithTimeout(ctx, rawWithin)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func hostPort(address string) (string, int, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", 0, err
	}
	host, text, err := net.SplitHostPort(u.Host)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(text)
	return host, port, err
}

// rawPrefetch is how many records a plain consumer of a stream holds unacknowledged, and rawAcks is
// how many it acknowledges together.
const (
	rawPrefetch = 5000
	rawAcks     = 250
)

// readRawAMQP reads n records like a plain AMQP consumer.
func readRawAMQP(ctx context.Context, v *vhost, n int) error {
	p, err := dial(v)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.ch.Qos(rawPrefetch, 0, false); err != nil {
		return err
	}
	jobs, err := p.ch.Consume(wire.ScheduledJobs, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rawWithin)
	defer cancel()
	for seen := 1; ; seen++ {
		select {
		case d, open := <-jobs:
			switch {
			case !open:
				return amqp.ErrClosed
			case seen == n:
				return nil
			case seen%rawAcks == 0:
				if err := d.Ack(true); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
