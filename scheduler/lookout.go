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

// lookout is what a leader does on the broker to see whether what it fires reaches its queue: see way.
type lookout struct {
	l        *leadership
	queue    string           // where probes arrive
	arriving *broker.Consumer // nil until the way has stood once
	proven   chan int64       // numbers of probes that did
	followed atomic.Int64     // the number of the newest probe that is to be followed by one to no queue
	astray   chan struct{}    // closed when the way is broken
	once     sync.Once
}

func newLookout(l *leadership) *lookout {
	return &lookout{l: l, queue: wire.ProbePrefix + random(), proven: make(chan int64), astray: make(chan struct{})}
}

// alarm ends the epoch.
func (o *lookout) alarm() { o.once.Do(func() { close(o.astray) }) }

// lookWithin bounds how long the first probe of an epoch may take, arriveWithin how long it may take once the journal has it.
const (
	lookWithin   = 20 * time.Second
	arriveWithin = 5 * time.Second
)

// patience is how long a probe may take to show. That a view is behind says nothing about the way.
func (o *lookout) patience() time.Duration {
	return wayPatience + min(o.l.s.view.LagOf(wire.Journal, wire.DeadJobs), wayLag)
}

// unroutedAgain is how long the leader waits after the broker refused a probe to no queue.
const unroutedAgain = 500 * time.Millisecond

// look sends a probe and tells why the way is broken, nil if the probe arrives. A probe that comes back
// while jobs.gated is away shows nothing: the next epoch looks again.
func (o *lookout) look(ctx context.Context) (broken, err error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if err = o.sendFirst(within); err == nil {
		err = o.l.conn.BindJournal(ctx) // of what it needs no probe sees jobs.bury
	}
	if !errors.Is(err, errAstray) && !broker.IsAstray(err) {
		return nil, err
	}
	if _, away := o.l.conn.QueueExists(within, wire.Gated); broker.IsAway(away) {
		return nil, away
	}
	return err, nil
}

// scout is the channel of the probes. Where jobs.fire is missing, it ends.
func (o *lookout) scout(ctx context.Context) (*broker.Publisher, error) {
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

// sendFirst sends a probe.
func (o *lookout) sendFirst(ctx context.Context) error {
	if o.arriving == nil {
		arriving, err := o.l.conn.FollowProbes(ctx, o.queue)
		if err != nil {
			return err
		}
		o.arriving = arriving
	}
	pub, err := o.scout(ctx)
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
		return errAstray
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkWay sees to it that the way stands before anything is fired. It is mended only when the journal has it that it was broken: who dies
// here leaves that to the next leader.
func (o *lookout) checkWay(ctx context.Context) error {
	switch {
	case o.l.core.way.mayMend():
		return o.mendWay(ctx)
	case o.l.core.way.told:
		return nil // until the view has read that
	}
	broken, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case broken == nil:
		o.l.core.stands()
		return nil
	case o.l.core.way.nothingFired():
		return o.mendWay(ctx)
	}
	o.l.s.log.Error("scheduler: an exchange of Millrace's, or a binding, is missing: what was fired since the last probe arrived is fired again", "error", broken)
	return o.l.core.way.foundAstray(time.Now())
}

func (o *lookout) mendWay(ctx context.Context) error {
	if err := o.l.conn.MakeWay(ctx); err != nil {
		return err
	}
	o.l.s.assertDirect(ctx, o.l.conn)
	broken, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("%w: %w", errAstray, broken)
	}
	o.l.core.stands()
	return nil
}

// watchProbes passes the numbers of probes that arrive to the loop. Some are followed by one to no queue: those pass once the broker has
// kept that, as it keeps jobs whose queue does not exist.
func (o *lookout) watchProbes(ctx context.Context) error {
	pub, err := o.scout(ctx)
	if err != nil {
		return nil //nolint:nilerr // the loop that fires ends the epoch
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, open := <-o.arriving.Deliveries():
			if !open {
				o.alarm() // the queue of probes is gone
				return nil
			}
			if err := o.arrived(ctx, pub, d); err != nil {
				o.l.s.log.Warn("scheduler: a probe went astray", "error", err)
				o.alarm()
				return nil
			}
		}
	}
}

func (o *lookout) arrived(ctx context.Context, pub *broker.Publisher, d wire.Delivery) error {
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
	case o.proven <- p.Number:
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
