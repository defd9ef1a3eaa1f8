package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// errBlocked ends an epoch before it has begun: the broker takes nothing.
var errBlocked = errors.New("scheduler: the broker takes no publishes now")

// prober is what a leader does on the broker to see whether what it fires reaches its queue: see way.
type prober struct {
	l        *leadership
	queue    string           // where probes arrive
	arriving *broker.Consumer // nil until the way has stood once
	arrivals chan int64       // numbers of probes that did
	followed atomic.Int64     // the number of the newest probe that is to be followed by one to no queue
	failed   chan struct{}    // closed when the way is broken
	once     sync.Once
}

func newProber(l *leadership) *prober {
	return &prober{l: l, queue: wire.ProbePrefix + random(), arrivals: make(chan int64), failed: make(chan struct{})}
}

// fail ends the epoch.
func (o *prober) fail() { o.once.Do(func() { close(o.failed) }) }

// lookWithin bounds how long the first probe of an epoch may take, arriveWithin how long it may take once the journal has it.
const (
	lookWithin   = 20 * time.Second
	arriveWithin = 5 * time.Second
)

// timeout is how long a probe may take to show. That a view is behind says nothing about the way.
func (o *prober) timeout() time.Duration {
	return probePatience + min(o.l.s.view.LagOf(wire.Journal, wire.DeadJobs), probeLag)
}

// unroutedAgain is how long the leader waits after the broker refused a probe to no queue.
const unroutedAgain = 500 * time.Millisecond

// check sends a probe and tells why the way is broken, nil if the probe arrives. A probe that comes back
// while jobs.gated is away shows nothing: the next epoch looks again.
func (o *prober) check(ctx context.Context) (broken, err error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if err = o.sendAndWait(within); err == nil {
		err = o.l.conn.BindJournal(ctx) // of what it needs no probe sees jobs.bury
	}
	if !errors.Is(err, errMisrouted) && !broker.IsAstray(err) {
		return nil, err
	}
	if _, away := o.l.conn.QueueExists(within, wire.Gated); broker.IsAway(away) {
		return nil, away
	}
	return err, nil
}

// channel is the channel of the probes. Where jobs.fire is missing, it ends.
func (o *prober) channel(ctx context.Context) (*broker.Publisher, error) {
	select {
	case <-o.l.lock.claim.Scout.Done():
	default:
		return o.l.lock.claim.Scout, nil
	}
	pub, err := o.l.conn.Publisher(ctx)
	if err == nil {
		o.l.lock.claim.Scout = pub
	}
	return pub, err
}

// sendAndWait sends a probe.
func (o *prober) sendAndWait(ctx context.Context) error {
	if o.arriving == nil {
		arriving, err := o.l.conn.FollowProbes(ctx, o.queue)
		if err != nil {
			return err
		}
		o.arriving = arriving
	}
	pub, err := o.channel(ctx)
	if err != nil {
		return err
	}
	if err := pub.SendMandatory(ctx, wire.Probe{Epoch: o.l.core.ledger.Epoch(), Routed: -1}.To(o.queue)); err != nil {
		return err
	}
	late := time.NewTimer(arriveWithin)
	defer late.Stop()
	select {
	case d, open := <-o.arriving.Deliveries():
		if !open {
			return o.arriving.Err()
		}
		if err := o.arriving.Ack(d.Tag, false); err != nil {
			return err
		}
		return pub.SendMandatory(ctx, wire.UnroutedProbe())
	case <-late.C:
		if o.l.blocked() {
			return errBlocked
		}
		return errMisrouted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// verifyRouting sees to it that the way stands before anything is fired. It is mended only when the journal has it that it was broken: who dies
// here leaves that to the next leader.
func (o *prober) verifyRouting(ctx context.Context) error {
	switch {
	case o.l.core.routing.mayRepair():
		return o.repairRouting(ctx)
	case o.l.core.routing.journaled:
		return nil // until the view has read that
	}
	broken, err := o.check(ctx)
	switch {
	case err != nil:
		return err
	case broken == nil:
		o.l.core.routingIntact()
		return nil
	case o.l.core.routing.nothingFired():
		return o.repairRouting(ctx)
	}
	o.l.s.log.Error("scheduler: an exchange of Millrace's, or a binding, is missing: what was fired since the last probe arrived is fired again", "error", broken)
	return o.l.core.routing.journalBroken(time.Now())
}

func (o *prober) repairRouting(ctx context.Context) error {
	if err := o.l.conn.MakeWay(ctx); err != nil {
		return err
	}
	o.l.s.assertDirect(ctx, o.l.conn)
	broken, err := o.check(ctx)
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("%w: %w", errMisrouted, broken)
	}
	o.l.core.routingIntact()
	return nil
}

// watchProbes passes the numbers of probes that arrive to the loop. Some are followed by one to no queue: those pass once the broker has
// kept that, as it keeps jobs whose queue does not exist.
func (o *prober) watchProbes(ctx context.Context) error {
	pub, err := o.channel(ctx)
	if err != nil {
		return nil //nolint:nilerr // the loop that fires ends the epoch
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, open := <-o.arriving.Deliveries():
			if !open {
				o.fail() // the queue of probes is gone
				return nil
			}
			if err := o.passOn(ctx, pub, d); err != nil {
				o.l.s.log.Warn("scheduler: a probe went astray", "error", err)
				o.fail()
				return nil
			}
		}
	}
}

func (o *prober) passOn(ctx context.Context, pub *broker.Publisher, d wire.Delivery) error {
	if err := o.arriving.Ack(d.Tag, false); err != nil {
		return err
	}
	p, _ := wire.ProbeOf(d.Headers)
	if p.Number == o.followed.Load() {
		if err := sendUnrouted(ctx, pub); err != nil {
			return err
		}
	}
	select {
	case o.arrivals <- p.Number:
	case <-ctx.Done():
	}
	return nil
}

// sendUnrouted sends a probe to no queue, until the broker has kept it: a stream without a leader
// refuses it for a moment. The core ends the epoch where that takes too long.
func sendUnrouted(ctx context.Context, pub *broker.Publisher) error {
	for {
		err := pub.SendMandatory(ctx, wire.UnroutedProbe())
		if !errors.Is(err, broker.ErrNacked) {
			return err
		}
		if err := pause.For(ctx, unroutedAgain); err != nil {
			return err
		}
	}
}

// readJournal reads a part of the journal again.
func (l *leadership) readJournal(ctx context.Context, from, below int64, each func(*wire.Record) error) error {
	err := l.s.records.Read(ctx, wire.Journal, max(from, 0), func(records []wire.Record) error {
		for i := range records {
			if records[i].Offset >= below {
				return errRead
			}
			if records[i].Offset < from {
				continue
			}
			if err := each(&records[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errRead) {
		return nil
	}
	if err == nil { // ctx ended before all was read
		err = ctx.Err()
	}
	return fmt.Errorf("scheduler: reading what was fired: %w", err)
}

var errRead = errors.New("all is read")
