package streams

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// amqpTransport reads streams as AMQP 0-9-1 consumers do.
type amqpTransport struct {
	cfg      Config
	features broker.Features
	done     chan struct{} // closed by Close
	once     sync.Once
	ask      *amqpQueries
	steps    steps
}

func openAMQP(ctx context.Context, cfg Config) (*amqpTransport, error) {
	c, err := dialAMQP(ctx, cfg, "asks", nil)
	if err != nil {
		return nil, err
	}
	product, _ := c.conn.Properties["product"].(string)
	version, _ := c.conn.Properties["version"].(string)
	return &amqpTransport{cfg: cfg, features: broker.FeaturesOf(product, version), done: make(chan struct{}), ask: newAMQPQueries(c)}, nil
}

func (t *amqpTransport) Name() string { return "amqp" }

func (t *amqpTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	t.ask.close()
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

// readChecked begins anew where wrong offsets are noticed before anything was delivered: so it is with the first record of every empty
// stream. Later on its caller has to.
func (t *amqpTransport) readChecked(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	end, ok, err := t.Last(ctx, stream)
	if err != nil {
		return err
	}
	if !ok {
		end = First // the first record is looked at
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

func (t *amqpTransport) read(ctx context.Context, stream string, from int64, check *relabelCheck, deliver func([]wire.Record) error) error {
	return readAhead(ctx, t.done, t.cfg.Ahead, deliver, func(ctx context.Context, out *ahead) error {
		return t.pump(ctx, stream, from, check, out)
	})
}

// pump reads the stream until that fails or ctx ends. The one loss that it gets over by itself is that of a connection which the broker
// closes because it cannot read what stands at an offset (see steps).
func (t *amqpTransport) pump(ctx context.Context, stream string, from int64, check *relabelCheck, out *ahead) error {
	step := t.steps.of(stream)
	r := &amqpReader{cfg: t.cfg, stream: stream, from: from, next: from, out: out, step: step, check: check}
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
