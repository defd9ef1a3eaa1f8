package streams

import (
	"context"
	"errors"
	"sync"

	"github.com/millrace-jobs/millrace/wire"
)

// amqpTransport reads streams as AMQP 0-9-1 consumers do.
type amqpTransport struct {
	cfg   Config
	drift bool          // this broker gives wrong offsets to a reader that retention overtook
	done  chan struct{} // closed by Close
	once  sync.Once
	ask   *amqpQueries
	steps steps
}

func openAMQP(ctx context.Context, cfg Config) (*amqpTransport, error) {
	c, err := dialAMQP(ctx, cfg, "asks", nil)
	if err != nil {
		return nil, err
	}
	product, _ := c.conn.Properties["product"].(string)
	return &amqpTransport{cfg: cfg, drift: product == "LavinMQ", done: make(chan struct{}), ask: newAMQPQueries(c)}, nil
}

func (t *amqpTransport) Name() string { return "amqp" }

func (t *amqpTransport) Close() error {
	t.once.Do(func() { close(t.done) })
	t.ask.close()
	return nil
}

func (t *amqpTransport) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	if t.drift {
		end, ok, err := t.Last(ctx, stream)
		if err != nil {
			return err
		}
		if !ok {
			end = First // a reader that waits at an empty stream is given wrong offsets too: the first record is looked at
		}
		deliver = (&relabelCheck{stream: stream, end: end, fetch: t.Fetch}).over(ctx, deliver)
	}
	return readAhead(ctx, t.done, t.cfg.Ahead, deliver, func(ctx context.Context, out *ahead) error {
		return t.pump(ctx, stream, from, out)
	})
}

// pump reads the stream until that fails or ctx ends. The one loss that it gets over by itself is that of a connection which the broker
// closes because it cannot read what stands at an offset (see steps).
func (t *amqpTransport) pump(ctx context.Context, stream string, from int64, out *ahead) error {
	step := t.steps.of(stream)
	r := &amqpReader{cfg: t.cfg, stream: stream, from: from, next: from, out: out, step: step}
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
