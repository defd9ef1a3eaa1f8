package streams

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

const overAMQP = "streams: the native protocol does not answer, reading over AMQP 0-9-1: " +
	"slower, and records that native clients published in sub-batches or not as AMQP 1.0 cannot be read"

// choice reads natively. While no node answers natively, it reads over AMQP 0-9-1.
type choice struct {
	cfg    Config
	native *nativeTransport

	opening sync.Mutex // held to open amqp

	mu        sync.Mutex
	amqp      *amqpTransport // nil unless native has failed
	answersAt time.Time      // when amqp began to answer
	fallen    bool           // amqp is in use
	back      chan struct{}  // closed when native is in use again
	lookedAt  time.Time      // when native was last tried
	closed    bool
}

// openChoice retries the native protocol for a while: after its start, a broker speaks AMQP before
// it speaks streams.
func openChoice(ctx context.Context, cfg Config, native *nativeTransport) (*choice, error) {
	c := &choice{cfg: cfg, native: native, back: make(chan struct{})}
	deadline := time.Now().Add(cfg.Patience)
	for {
		err := native.nodes.answer(ctx)
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, ErrRefused) || time.Now().After(deadline):
			if c.amqp, err = openAMQP(ctx, cfg); err != nil {
				return nil, err
			}
			c.fallBack(c.native.nodes.whyDown())
			return c, nil
		}
		if err := pause.For(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// current returns the transport in use. If it is AMQP 0-9-1, back is closed when native is in use
// again.
func (c *choice) current() (t Transport, back <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fallen {
		return c.amqp, c.back
	}
	return c.native, nil
}

func (c *choice) Name() string {
	t, _ := c.current()
	return t.Name()
}

func (c *choice) LastIsCheap() bool {
	t, _ := c.current()
	return t.LastIsCheap()
}

func (c *choice) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	t, back := c.current()
	if back == nil {
		err := t.Read(ctx, stream, from, deliver)
		c.note(ctx, t)
		return err
	}
	reading, stop := context.WithCancel(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer stop()
	looking.Go(func() {
		c.lookForNative(reading, back)
		stop()
	})
	err := t.Read(reading, stream, from, deliver)
	if ctx.Err() == nil && isClosed(back) {
		return lost("the native protocol answers again")
	}
	return err
}

func (c *choice) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	t, _ := c.current()
	offset, ok, err = t.First(ctx, stream)
	c.note(ctx, t)
	return offset, ok, err
}

func (c *choice) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	t, _ := c.current()
	offset, ok, err = t.Last(ctx, stream)
	c.note(ctx, t)
	return offset, ok, err
}

func (c *choice) Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	t, _ := c.current()
	r, err := t.Fetch(ctx, stream, offset)
	c.note(ctx, t)
	return r, err
}

func (c *choice) Next(ctx context.Context, stream string, offset int64) (int64, error) {
	t, _ := c.current()
	next, err := t.Next(ctx, stream, offset)
	c.note(ctx, t)
	return next, err
}

func (c *choice) Close() error {
	c.mu.Lock()
	c.closed = true
	amqp := c.amqp
	c.mu.Unlock()
	err := c.native.Close()
	if amqp != nil {
		err = errors.Join(err, amqp.Close())
	}
	return err
}

// note falls back to AMQP 0-9-1 if only that has answered for a while. The native protocol can read
// more, so choice does not give it up just because a broker is starting or stopping.
func (c *choice) note(ctx context.Context, used Transport) {
	reason := c.native.nodes.whyDown()
	if used != Transport(c.native) || ctx.Err() != nil || !c.opening.TryLock() {
		return
	}
	defer c.opening.Unlock()
	if reason == nil {
		c.closeAMQP()
		return
	}
	if c.openAMQP(ctx) == nil && c.answersFor() >= c.cfg.FallBack {
		c.fallBack(reason)
	}
}

// openAMQP connects, unless there is an open connection.
func (c *choice) openAMQP(ctx context.Context) error {
	c.mu.Lock()
	amqp := c.amqp
	c.mu.Unlock()
	if amqp != nil && amqp.alive() {
		return nil
	}
	c.closeAMQP()
	ctx, cancel := context.WithTimeout(ctx, amqpEach)
	defer cancel()
	amqp, err := openAMQP(ctx, c.cfg)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = amqp.Close()
		return lost("the transport was closed")
	}
	c.amqp, c.answersAt = amqp, time.Now()
	return nil
}

// closeAMQP closes the AMQP connection unless it is in use.
func (c *choice) closeAMQP() {
	c.mu.Lock()
	amqp := c.amqp
	if c.fallen || amqp == nil {
		c.mu.Unlock()
		return
	}
	c.amqp = nil
	c.mu.Unlock()
	_ = amqp.Close()
}

func (c *choice) answersFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.answersAt)
}

func (c *choice) fallBack(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fallen, c.lookedAt = true, time.Now()
	c.cfg.Log.Warn(overAMQP, "url", broker.MaskURL(c.cfg.StreamURL), "error", reason)
}

// lookForNative tries the native protocol periodically, until one of the readers gets an answer.
func (c *choice) lookForNative(ctx context.Context, back <-chan struct{}) {
	ticker := time.NewTicker(c.cfg.Again)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-back:
			return
		case <-ticker.C:
			if c.isTurn() && c.native.nodes.answer(ctx) == nil && c.trusts(ctx) {
				c.goBack()
			}
		}
	}
}

// isTurn reports whether the caller is to try native. Only one reader at a time does that.
func (c *choice) isTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fallen || time.Since(c.lookedAt) < c.cfg.Again/2 {
		return false
	}
	c.lookedAt = time.Now()
	return true
}

// trusts reports whether native, which answers again, may be used.
func (c *choice) trusts(ctx context.Context) bool {
	if c.cfg.Trust == nil {
		return true
	}
	c.mu.Lock()
	amqp := c.amqp
	c.mu.Unlock()
	return c.cfg.Trust(ctx, c.native, amqp) == nil
}

func (c *choice) goBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fallen {
		return
	}
	c.fallen = false
	close(c.back)
	c.back = make(chan struct{})
	c.cfg.Log.Info("streams: the native protocol answers again")
}
