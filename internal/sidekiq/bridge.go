package sidekiq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-jobs/millrace/broker"
	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// Config configures a bridge.
type Config struct {
	RedisURL string
	Broker   broker.Config
	Rules    Rules
	Log      *slog.Logger
}

// Bridge moves jobs both ways.
type Bridge struct {
	cfg   Config
	store *store

	warned atomic.Int64 // when the log last said that Redis takes no jobs
}

// New returns a bridge. Close ends its connections. The error is about the URL of Redis.
func New(cfg Config) (*Bridge, error) {
	redis, err := newServer(cfg.RedisURL)
	if err != nil {
		return nil, err
	}
	return &Bridge{cfg: cfg, store: &store{redis, rand.Text()}}, nil
}

// Close ends the bridge's connections to Redis.
func (b *Bridge) Close() error { return b.store.redis.close() }

// Run moves jobs until ctx ends. It returns an error if Redis cannot be used at the beginning.
// Later it waits while Redis or the broker is away. While another bridge runs, it waits for its
// end.
func (b *Bridge) Run(ctx context.Context) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = b.store.unlock(ctx)
	}()
	led, waited := false, false
	for ctx.Err() == nil {
		switch has, err := b.store.lock(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			b.cfg.Log.Warn("Redis is away", "error", err)
		case has:
			b.cfg.Log.Info("moving jobs", "redis", b.store.redis.host, "to_sidekiq", b.cfg.Rules.ToSidekiq)
			err := b.lead(ctx)
			if err != nil && !led {
				return err
			}
			if err != nil {
				b.cfg.Log.Warn("the broker refuses the bridge", "error", err)
			}
			led, waited = true, false
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
		return fmt.Errorf("the Redis at %s: %w", b.store.redis.host, err)
	}
	return nil
}

// lead moves jobs as long as this bridge has the lock. It returns an error if the broker refuses
// the worker for the jobs that go out.
func (b *Bridge) lead(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if len(b.cfg.Rules.ToSidekiq) > 0 {
		worker := b.worker()
		group.Go(func() error { return worker.Run(ctx) })
	}
	group.Go(func() error {
		defer cancel()
		b.hold(ctx)
		return nil
	})
	group.Go(func() error {
		defer cancel()
		newInward(b).run(ctx)
		return nil
	})
	return group.Wait()
}

// hold keeps the lock until ctx ends, and returns when it is lost.
func (b *Bridge) hold(ctx context.Context) {
	kept := time.Now()
	for pause.For(ctx, lockTime/5) == nil {
		has, err := b.store.lock(ctx)
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

const (
	outAtOnce    = 50              // jobs that are handed over at the same time
	longestPause = 5 * time.Second // between two attempts
)

// handOver gives a job to Sidekiq. While Redis is away it waits, because the job has not failed.
func (b *Bridge) handOver(ctx context.Context, job *millrace.RawJob) error {
	text, err := toSidekiq(job.Raw, job.JID, job.Queue, time.Now())
	if err != nil {
		return millrace.KillWith(err)
	}
	push := b.store.pushing(job.Queue, text)
	for retry := pause.Growing(longestPause); ; {
		// What was sent is waited for, also after ctx has ended. A command has a time limit of its
		// own.
		if err = push.try(context.WithoutCancel(ctx)); err == nil {
			return nil
		}
		b.warn("Redis takes no jobs", err)
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

// warn logs an error, at most once in ten seconds: it is that of many jobs.
func (b *Bridge) warn(message string, err error) {
	now, last := time.Now().Unix(), b.warned.Load()
	if now-last >= 10 && b.warned.CompareAndSwap(last, now) {
		b.cfg.Log.Warn(message, "error", err)
	}
}
