package sidekiq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/millrace-jobs/millrace/broker"
	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// Config configures a bridge.
type Config struct {
	Redis  *redis.Options
	Broker broker.Config
	Rules  Rules
	Log    *slog.Logger
}

// Bridge moves jobs both ways.
type Bridge struct {
	cfg   Config
	store *store
	id    string
}

// New returns a bridge. Close ends its connections.
func New(cfg Config) *Bridge {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never returns an error
	redis.SetLogger(silent{})
	return &Bridge{cfg: cfg, store: &store{redis.NewClient(cfg.Redis)}, id: hex.EncodeToString(id)}
}

// silent is the log of the Redis client, whose errors the bridge logs itself.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close ends the bridge's connections to Redis.
func (b *Bridge) Close() error { return b.store.redis.Close() }

// Run moves jobs until ctx ends. It returns an error if Redis cannot be used at the beginning. Later
// it waits while Redis or the broker is away. While another bridge runs, it waits for its end.
func (b *Bridge) Run(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = b.store.unlock(ctx, b.id)
	}()
	for waited := false; ctx.Err() == nil; {
		switch has, err := b.store.lock(ctx, b.id); {
		case ctx.Err() != nil:
		case err != nil:
			b.cfg.Log.Warn("Redis is away", "error", err)
		case has:
			b.cfg.Log.Info("moving jobs", "redis", b.cfg.Redis.Addr, "to_sidekiq", b.cfg.Rules.ToSidekiq)
			if err := b.lead(ctx); err != nil {
				return err
			}
			waited = false
			continue
		case !waited:
			b.cfg.Log.Info("another bridge moves jobs: waiting for its end")
			waited = true
		}
		_ = pause.For(ctx, lockTime/5)
	}
	return nil
}

// check says what is wrong with the server of Redis.
func (b *Bridge) check(ctx context.Context) error {
	if err := b.store.check(ctx); err != nil {
		return fmt.Errorf("the Redis at %s: %w", b.cfg.Redis.Addr, err)
	}
	return nil
}

// lead moves jobs as long as this bridge has the lock.
func (b *Bridge) lead(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	outs := 0
	if len(b.cfg.Rules.ToSidekiq) > 0 {
		outs = 1
		worker := b.worker()
		go func() {
			ended <- worker.Run(ctx)
			cancel()
		}()
	}
	held := make(chan struct{})
	go func() {
		defer close(held)
		defer cancel()
		b.hold(ctx)
	}()
	in := &inward{rules: b.cfg.Rules, store: b.store, cfg: b.cfg.Broker, log: b.cfg.Log}
	in.run(ctx)
	cancel()
	<-held
	if outs > 0 {
		return <-ended
	}
	return nil
}

// hold keeps the lock until ctx ends, and returns when it is lost.
func (b *Bridge) hold(ctx context.Context) {
	kept := time.Now()
	for pause.For(ctx, lockTime/5) == nil {
		has, err := b.store.lock(ctx, b.id)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !has:
			b.cfg.Log.Warn("another bridge moves jobs now")
			return
		case err == nil:
			kept = time.Now()
		case time.Since(kept) > lockTime:
			b.cfg.Log.Warn("Redis is away", "error", err)
			return
		}
	}
}

// worker runs the jobs that go out: it hands each to Sidekiq. It is a worker like others: it can be
// seen, paused and stopped.
func (b *Bridge) worker() *millrace.Worker {
	w := millrace.NewWorker(millrace.WorkerConfig{
		URL: b.cfg.Broker.AMQPURL, Queues: b.cfg.Rules.ToSidekiq, Concurrency: outAtOnce, Tag: "sidekiq-bridge",
		MaxDeaths: -1, // a bridge that dies says nothing about the job
		Logger:    b.cfg.Log,
	})
	w.HandleOthers(b.handOver, nil)
	return w
}

// outAtOnce is how many jobs are handed over at the same time.
const outAtOnce = 50

// longestPause is that between two attempts.
const longestPause = 5 * time.Second

// handOver gives a job to Sidekiq. While Redis is away it waits, because the job has not failed.
func (b *Bridge) handOver(ctx context.Context, job *millrace.RawJob) error {
	text, err := out(job.Raw, job.JID, job.Queue, time.Now())
	if err != nil {
		return millrace.KillWith(err)
	}
	for retry := pause.Growing(longestPause); ; {
		// What was sent is waited for, also after ctx has ended. Redis has a time limit of its own.
		if err = b.store.push(context.WithoutCancel(ctx), job.Queue, text); err == nil {
			return nil
		}
		b.cfg.Log.Warn("Redis took no job", "queue", job.Queue, "jid", job.JID, "error", err)
		select {
		case <-job.Stopping():
			return millrace.ErrHandBack
		case <-time.After(retry.NextBackOff()):
		}
		if errors.Is(context.Cause(ctx), millrace.ErrCancelled) {
			return millrace.ErrCancelled
		}
	}
}
