package streams

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// amqpTransport reads streams as an AMQP 0-9-1 consumer.
type amqpTransport struct {
	*amqpQueries
	done chan struct{} // closed by Close
	once sync.Once
}

func openAMQP(ctx context.Context, cfg Config) (*amqpTransport, error) {
	hosts, err := newAMQPHosts(cfg)
	if err != nil {
		return nil, err
	}
	c, err := hosts.dial(ctx, cfg, "asks", nil)
	if err != nil {
		return nil, err
	}
	return &amqpTransport{amqpQueries: newAMQPQueries(cfg, hosts, c), done: make(chan struct{})}, nil
}

func (t *amqpTransport) Name() string { return "amqp" }

func (t *amqpTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	t.close()
	return nil
}

func (t *amqpTransport) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	if !t.features.StreamOffsetsDrift {
		return t.read(ctx, stream, from, nil, deliver)
	}
	err := t.readChecked(ctx, stream, from, deliver)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // it ended while the broker was being asked
	}
	return err
}

// readChecked starts again if it detects wrong offsets before anything was delivered. After that,
// only the caller can start again.
func (t *amqpTransport) readChecked(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	if err := t.awaitFirst(ctx, stream); err != nil {
		return err
	}
	end, _, err := t.Last(ctx, stream)
	if err != nil {
		return err
	}
	for {
		check, delivered := &relabelCheck{stream: stream, end: end, fetch: t.Fetch}, false
		err := t.read(ctx, stream, from, check, check.over(ctx, func(records []wire.Record) error {
			delivered = true
			return deliver(records)
		}))
		if delivered || !errors.Is(err, ErrRelabelled) {
			return err
		}
	}
}

const (
	// An empty stream is checked for a record every depthEvery at first, and later every
	// depthAtLeast.
	depthEvery   = 100 * time.Millisecond
	depthAtLeast = time.Second
)

// awaitFirst waits until a stream has a record. A reader that subscribes to an empty stream costs
// LavinMQ a whole core from the first record on. It gets that record seconds late and with a wrong
// offset.
func (t *amqpTransport) awaitFirst(ctx context.Context, stream string) error {
	for wait := depthEvery; ; wait = min(wait+wait/10, depthAtLeast) {
		n, err := t.depth(ctx, stream)
		if err != nil || n > 0 {
			return err
		}
		if wait == depthEvery {
			t.cfg.Log.Debug("streams: waiting for a first record", "stream", stream)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.done:
			return lost("the transport was closed")
		case <-time.After(wait):
		}
	}
}

func (t *amqpTransport) read(ctx context.Context, stream string, from int64, check *relabelCheck, deliver func([]wire.Record) error) error {
	return readAhead(ctx, t.done, t.cfg.Ahead, deliver, func(ctx context.Context, out *ahead) error {
		return t.pump(ctx, stream, from, check, out)
	})
}

// pump reads the stream until reading fails or ctx ends. It reconnects in one case only: the broker
// closed the connection because it cannot convert a record (see steps).
func (t *amqpTransport) pump(ctx context.Context, stream string, from int64, check *relabelCheck, out *ahead) error {
	step := t.steps.of(stream)
	r := &amqpReader{cfg: t.cfg, hosts: t.hosts, stream: stream, from: from, next: from, out: out, step: step, check: check}
	for {
		err := r.session(ctx)
		switch {
		case errors.Is(err, errProbe):
			r.next, r.stepped = step.first(), false
		case !isPoison(err) || ctx.Err() != nil:
			return err
		case !step.died(r.next):
			return err
		default:
			r.next, r.stepped = step.last()+1, true
			t.cfg.Log.Warn("streams: the broker cannot read a record over AMQP 0-9-1, stepping over it",
				"stream", stream, "offset", step.first(), "through", step.last(), "err", err)
		}
	}
}
