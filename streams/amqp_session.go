package streams

import (
	"context"
	"errors"
)

// session reads over one connection.
func (r *amqpReader) session(ctx context.Context) (err error) {
	c, err := r.hosts.dial(ctx, r.cfg, "reads "+r.stream, r.out)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.leave)
	defer func() {
		if errors.Is(err, ErrLost) && !isPoison(err) && ctx.Err() == nil {
			r.hosts.lost(c)
		}
		stop()
		c.close()
	}()
	pace := newPace(r.cfg.Ahead)
	for {
		if err := r.subscription(ctx, c, pace); !errors.Is(err, errRepace) {
			return err
		}
		// Check now: the next subscription has right offsets again, even if this one had wrong
		// ones.
		if err := r.checkLast(ctx); err != nil {
			return err
		}
	}
}

func (r *amqpReader) checkLast(ctx context.Context) error {
	if r.check == nil || r.last.Stream == "" || r.last.Fault != "" {
		return nil
	}
	return r.check.check(ctx, r.last)
}
