package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/internal/pause"
)

func nothing(ctx context.Context, w *world) error {
	w.mark()
	return pause.For(ctx, w.lasting(5*time.Second, 30*time.Second))
}

func sidecarKilled(ctx context.Context, w *world) error {
	for range w.size(5, 50) {
		if err := errors.Join(w.flows(ctx, w.rate), pause.For(ctx, w.upTo(time.Second))); err != nil {
			return err
		}
		s, _, err := w.leader()
		if err != nil {
			return err
		}
		w.mark()
		s.kill()
		if err := errors.Join(w.flows(ctx, 1), s.start()); err != nil {
			return err
		}
	}
	return nil
}

func sidecarFrozen(ctx context.Context, w *world) error {
	s, _, err := w.leader()
	if err != nil {
		return err
	}
	w.mark()
	p := s.process()
	if err := errors.Join(p.Freeze(), pause.For(ctx, w.lasting(20*time.Second, 40*time.Second)), p.Thaw()); err != nil {
		return err
	}
	if s, _, err = w.leader(); err != nil {
		return err
	}
	// The same for the network: the sidecar keeps running, and nothing reaches it.
	if err := errors.Join(w.flows(ctx, w.rate), pause.For(ctx, w.upTo(time.Second))); err != nil {
		return err
	}
	w.mark()
	for i, other := range w.slots {
		if other != s {
			continue
		}
		for _, t := range w.taps[i] {
			t.freeze()
			defer t.thaw()
		}
	}
	return pause.For(ctx, w.lasting(20*time.Second, 40*time.Second))
}

// upgrade stops each sidecar in turn, and starts the newer version in its place.
func upgrade(ctx context.Context, w *world) error {
	for _, s := range w.slots {
		if err := w.flows(ctx, w.rate); err != nil {
			return err
		}
		w.mark()
		// An older sidecar ends with an error once a newer one leads.
		_ = s.stop()
		if err := s.startAs(w.binary); err != nil {
			return err
		}
		if err := eventually(ctx, startWithin, "the newer sidecar answers", func() bool { return s.process().Ready() }); err != nil {
			return err
		}
	}
	return w.flows(ctx, w.rate)
}

func newQueue(ctx context.Context, w *world) error {
	consumed, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	made := map[string]bool{}
	for i := range w.size(5, 20) {
		if err := w.flows(ctx, w.rate); err != nil {
			return err
		}
		queue := fmt.Sprintf("new%d", i)
		made[queue] = true
		all.Go(func() { w.consume(consumed, queue, i%len(w.nodes.Nodes)) })
		if err := w.burst(ctx, queue, w.size(300, 2000)); err != nil {
			return err
		}
		s, _, err := w.leader()
		if err != nil {
			return err
		}
		if err := pause.For(ctx, w.upTo(time.Second)); err != nil {
			return err
		}
		w.mark()
		s.kill()
		if err := errors.Join(w.flows(ctx, 1), s.start()); err != nil {
			return err
		}
	}
	// Jobs that are missing then are found at the end.
	err := eventually(ctx, w.patience, "the jobs of the new queues arrive", func() bool {
		w.jobs.mu.Lock()
		defer w.jobs.mu.Unlock()
		return !w.jobs.anyMissing(made)
	})
	if errors.Is(err, errNotWithin) {
		return nil
	}
	return err
}

// burst publishes jobs that are due now.
func (w *world) burst(ctx context.Context, queue string, n int) error {
	conn, err := w.dial(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := w.jobs.publisher(conn)
	if err != nil {
		return err
	}
	var entries []entry
	for i := range n {
		entries = append(entries, entry{fmt.Sprintf("%s-%s-%05d", w.vhost, queue, i), queue, time.Now()})
	}
	return p.publish(ctx, entries)
}
