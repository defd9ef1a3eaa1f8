package hosts

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Rules say how to run a race.
type Rules[T any] struct {
	Patience time.Duration // how long an attempt may take before the next one starts in parallel
	Limits   Limits        // of one attempt; zero: an attempt ends by itself
	Drop     func(T)       // gets each success that came too late; nil: nothing to do

	// Repeat makes the race try addresses again, in parallel with the attempts that hang, until
	// each has failed once. A node that leads to a frozen node accepts connections and never
	// answers. Only a new attempt finds out that it leads elsewhere now. A single host, which may
	// just be slow, gets twice the patience.
	Repeat bool
}

// Race tries the first address of the hosts (host:port) in their order. It tries the next one when
// that has failed, or has taken longer than the patience of the rules. The first success wins, and
// cancels the other attempts.
func Race[T any](ctx context.Context, o *Order, hosts []string, rules Rules[T], attempt func(context.Context, Target) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	r := race[T]{Rules: rules, ctx: ctx, order: o, hosts: hosts, attempt: attempt, outcomes: make(chan outcome[T]), failed: map[Target]bool{}}
	r.next, r.stop = iter.Pull2(o.targets(ctx, hosts))
	defer func() { r.stop() }()
	defer r.running.Wait()
	defer cancel()
	return r.run()
}

type race[T any] struct {
	Rules[T]
	ctx      context.Context //nolint:containedctx // the race ends with the call
	order    *Order
	hosts    []string
	attempt  func(context.Context, Target) (T, error)
	next     func() (numbered, error, bool)
	stop     func()
	again    bool     // all targets have been tried
	targets  []Target // the different targets that have been tried
	running  sync.WaitGroup
	outcomes chan outcome[T]
	started  []Target // targets with a running attempt
	failed   map[Target]bool
	failures Errors // the first error of each target
}

type outcome[T any] struct {
	at     Target
	result T
	err    error
}

func (r *race[T]) run() (none T, err error) {
	r.start()
	patience := r.Patience
	if r.Repeat && len(r.hosts) == 1 {
		patience *= 2
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for !r.over() {
		select {
		case <-r.ctx.Done():
			return none, r.ctx.Err()
		case <-timer.C:
			r.start()
			timer.Reset(patience)
		case o := <-r.outcomes:
			if o.err == nil {
				r.won(o.at)
				return o.result, nil
			}
			r.ended(o.at)
			r.fail(o.at, o.err)
			if !r.again {
				r.start()
				timer.Reset(patience)
			}
		}
	}
	if len(r.failures) == 1 {
		return none, r.failures[0]
	}
	return none, r.failures
}

// over reports whether there is nothing left to wait for.
func (r *race[T]) over() bool {
	if r.again {
		return len(r.failed) == len(r.targets)
	}
	return len(r.started) == 0
}

// start makes the next attempt, if there is one. When all have been made, it looks the hosts up
// once more. A lookup that fails now may succeed at the next call.
func (r *race[T]) start() {
	lookedUp := false
	for r.ctx.Err() == nil {
		t, err, more := r.next()
		if !more && r.Repeat && !lookedUp && len(r.failed) < len(r.targets) {
			r.stop()
			r.again, lookedUp = true, true
			r.next, r.stop = iter.Pull2(r.order.targets(r.ctx, r.hosts))
			t, err, more = r.next()
		}
		if !more {
			return
		}
		if !slices.Contains(r.targets, t.Target) {
			r.targets = append(r.targets, t.Target)
		}
		if err != nil {
			r.fail(t.Target, err)
			continue
		}
		r.started = append(r.started, t.Target)
		r.running.Go(func() { r.try(t) })
		return
	}
}

// try makes one attempt.
func (r *race[T]) try(t numbered) {
	o := outcome[T]{at: t.Target}
	one := func(ctx context.Context) (err error) {
		o.result, err = r.attempt(ctx, t.Target)
		return err
	}
	if limit := r.Limits.of(t, len(r.hosts)); limit > 0 {
		o.err = within(r.ctx, limit, one)
	} else {
		o.err = one(r.ctx)
	}
	select {
	case r.outcomes <- o:
	case <-r.ctx.Done():
		if o.err == nil && r.Drop != nil {
			r.Drop(o.result)
		}
	}
}

// won records that the others were slower.
func (r *race[T]) won(winner Target) {
	for _, t := range r.started {
		if t != winner {
			r.order.Lost(t)
		}
	}
	r.order.Good(winner)
}

// ended removes an attempt from the running ones.
func (r *race[T]) ended(t Target) {
	if i := slices.Index(r.started, t); i >= 0 {
		r.started = slices.Delete(r.started, i, i+1)
	}
}

func (r *race[T]) fail(t Target, err error) {
	r.order.Lost(t)
	if r.failed[t] {
		return
	}
	r.failed[t] = true
	if len(r.hosts) > 1 {
		err = fmt.Errorf("%s: %w", t.Host, err)
	}
	r.failures = append(r.failures, err)
}
