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

// errBlocked ends an epoch before it has begun: the broker takes no publishes.
var errBlocked = errors.New("scheduler: the broker takes no publishes now")

// prober checks on the broker whether fires reach their queues: see routing.
type prober struct {
	l        *leadership
	queue    string              // where probes arrive
	arriving *broker.Consumer    // nil until the routing was intact once
	unrouted chan []wire.Message // fires that found no queue
	arrivals chan int64          // the numbers of probes that arrived
	followed atomic.Int64        // the number of the newest probe that is to be followed
	failed   chan struct{}       // closed when the routing is broken
	once     sync.Once
}

func newProber(l *leadership) *prober {
	return &prober{l: l, queue: wire.ProbePrefix + random(), arrivals: make(chan int64), unrouted: make(chan []wire.Message), failed: make(chan struct{})}
}

// fail ends the epoch.
func (p *prober) fail() { p.once.Do(func() { close(p.failed) }) }

// failUnlessClosed ends the epoch because the queue of probes is gone, unless it went with the
// connection.
func (p *prober) failUnlessClosed() {
	select {
	case <-p.l.conn.Done():
	case <-time.After(lastWordsWithin):
		p.fail()
	}
}

// lookWithin is how long the first probe of an epoch may take, arriveWithin how long once the
// broker has confirmed it.
const (
	lookWithin   = 20 * time.Second
	arriveWithin = 5 * time.Second
)

// timeout returns how long a confirmed probe may take to show. A view that lags says nothing about
// the routing.
func (p *prober) timeout() time.Duration {
	return probePatience + min(p.l.s.view.LagOf(wire.Journal, wire.DeadJobs), probeLag)
}

// unroutedAgain is when an unroutable probe is sent again that the broker refused.
const unroutedAgain = 500 * time.Millisecond

// check sends a probe, and returns why the routing is broken, nil if the probe arrives. If
// jobs.gated is away, a probe that comes back shows nothing, and the next epoch checks again.
func (p *prober) check(ctx context.Context) (broken, err error) {
	within, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if err = p.sendAndWait(within); err == nil {
		err = p.l.conn.Topology().BindJournal(ctx) // probes do not check jobs.bury
	}
	if !errors.Is(err, errMisrouted) && !broker.IsUnroutable(err) {
		return nil, err
	}
	if _, away := p.l.conn.Queues().Exists(within, wire.Gated); broker.IsAway(away) {
		return nil, away
	}
	return err, nil
}

// channel returns the channel of the probes. The broker closes it if jobs.fire is missing.
func (p *prober) channel(ctx context.Context) (*broker.Publisher, error) {
	select {
	case <-p.l.lock.claim.Scout.Done():
	default:
		return p.l.lock.claim.Scout, nil
	}
	pub, err := p.l.conn.Publisher(ctx)
	if err == nil {
		p.l.lock.claim.Scout = pub
	}
	return pub, err
}

// confirmWithin is how long the broker may take to confirm a probe, before it is sent on another
// channel. RabbitMQ 3.10 never answers some of what a channel publishes while a stream gets another
// leader. A slow broker gets more time.
var confirmWithin = []time.Duration{2 * time.Second, 4 * time.Second, lookWithin}

// send sends a probe, on another channel if the broker does not answer.
func (p *prober) send(ctx context.Context, m wire.Message) error {
	return onOtherChannels(ctx, confirmWithin, func(ctx context.Context) error {
		pub, err := p.channel(ctx)
		if err != nil {
			return err
		}
		return pub.SendMandatory(ctx, m)
	}, func() error {
		old := p.l.lock.claim.Scout
		go func() { _ = old.Close() }() // waits for the broker's answer or the end of the connection
		pub, err := p.l.conn.Publisher(ctx)
		if err == nil {
			p.l.lock.claim.Scout = pub
		}
		return err
	})
}

// onOtherChannels sends something, each time within a limit, and changes the channel in between.
func onOtherChannels(ctx context.Context, limits []time.Duration, send func(context.Context) error, change func() error) error {
	for i, limit := range limits {
		within, cancel := context.WithTimeout(ctx, limit)
		err := send(within)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || i == len(limits)-1 {
			return err
		}
		if err := change(); err != nil {
			return err
		}
	}
	return nil
}

// sendAndWait sends a probe, and waits until it arrives.
func (p *prober) sendAndWait(ctx context.Context) error {
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.send(ctx, wire.Probe{Epoch: p.l.core.ledger.Epoch(), Routed: -1}.To(p.queue)); err != nil {
		return err
	}
	late := time.NewTimer(arriveWithin)
	defer late.Stop()
	select {
	case d, open := <-p.arriving.Deliveries():
		if !open {
			return p.arriving.Err()
		}
		if err := p.arriving.Ack(d.Tag, false); err != nil {
			return err
		}
		return p.send(ctx, wire.UnroutedProbe())
	case <-late.C:
		if p.l.blocked() {
			return errBlocked
		}
		return errMisrouted
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow begins to consume what comes out of the route.
func (p *prober) follow(ctx context.Context) (err error) {
	p.followUnrouted(ctx)
	if p.arriving == nil {
		p.arriving, err = p.l.conn.Probes().Follow(ctx, p.queue)
	}
	return err
}

// followWithin is how long the broker may take for that. It is not worth a longer standstill.
const followWithin = 3 * time.Second

// followUnrouted begins to consume the fires that find no queue. Without them the leader fires too.
func (p *prober) followUnrouted(ctx context.Context) {
	if p.l.core.unrouted.on || p.l.conn.Features().OneNodeServes {
		return
	}
	within, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	fires, err := p.l.conn.Probes().FollowUnrouted(within, p.queue+".unrouted", p.l.core.ledger.Epoch())
	if err != nil {
		if !broker.IsMissing(err) { // else check finds what is missing
			p.l.s.log.Warn("scheduler: deliveries that find no queue do not come back: if the broker loses their records in jobs.gated, they are lost", "error", err)
		}
		return
	}
	p.l.core.unrouted.on = true
	p.l.beside(func(ctx context.Context) { p.watchUnrouted(ctx, fires) })
}

// watchUnrouted passes the fires that found no queue to the loop, as many at once as there are. It
// passes none when no more come.
func (p *prober) watchUnrouted(ctx context.Context, fires *broker.Consumer) {
	var (
		came []wire.Message
		last uint64
	)
	for {
		out := p.unrouted
		if len(came) == 0 {
			out = nil
		}
		select {
		case <-ctx.Done():
			return
		case out <- came:
			came = nil
			if err := fires.Ack(last, true); err != nil {
				p.l.s.log.Debug("scheduler: cannot acknowledge deliveries that found no queue", "error", err)
			}
		case d, open := <-fires.Deliveries():
			if !open {
				p.l.s.log.Debug("scheduler: deliveries that find no queue do not come back any more", "error", fires.Err())
				p.passUnrouted(ctx, came)
				p.passUnrouted(ctx, nil)
				return
			}
			if !p.l.core.entries.Trusts(&wire.Record{UserID: d.UserID}) {
				_ = fires.Ack(d.Tag, false)
				continue
			}
			last, came = d.Tag, append(came, wire.Message{Key: d.Key, MessageID: d.MessageID, Timestamp: d.Timestamp, Priority: d.Priority, Headers: d.Headers, Body: d.Body})
		}
	}
}

func (p *prober) passUnrouted(ctx context.Context, fires []wire.Message) {
	select {
	case p.unrouted <- fires:
	case <-ctx.Done():
	}
}

// verifyRouting makes sure that the routing is intact before anything is fired. It is repaired when
// the journal has it that it was broken. A leader that ends here leaves that to the next one.
func (p *prober) verifyRouting(ctx context.Context) error {
	switch {
	case p.l.core.routing.mayRepair():
		return p.repairRouting(ctx)
	case p.l.core.routing.journaled:
		return nil // until the view has read that
	}
	broken, err := p.check(ctx)
	switch {
	case err != nil:
		return err
	case broken == nil:
		p.l.core.routingIntact()
		return nil
	case p.l.core.routing.nothingFired():
		return p.repairRouting(ctx)
	}
	p.l.s.log.Error("scheduler: an exchange of Millrace's or a binding is missing; it is repaired, and jobs sent since the last probe that arrived are delivered again", "error", broken)
	return p.l.core.routing.journalBroken(time.Now())
}

// repairRouting declares what is missing, and checks the routing again.
func (p *prober) repairRouting(ctx context.Context) error {
	if err := p.l.conn.Topology().EnsureRouting(ctx); err != nil {
		return err
	}
	p.l.s.assertDirect(ctx, p.l.conn)
	broken, err := p.check(ctx)
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("%w: %w", errMisrouted, broken)
	}
	p.l.core.routingIntact()
	return nil
}

// watchProbes passes the numbers of probes that arrive to the loop. A probe that is to be followed
// passes once the broker has kept the one after it, as it keeps jobs whose queue does not exist.
func (p *prober) watchProbes(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, open := <-p.arriving.Deliveries():
			if !open {
				p.failUnlessClosed()
				return nil
			}
			if err := p.passOn(ctx, d); err != nil {
				if ctx.Err() == nil {
					p.l.s.log.Warn("scheduler: a probe was misrouted", "error", err)
				}
				p.fail()
				return nil
			}
		}
	}
}

// passOn takes in a probe that arrived.
func (p *prober) passOn(ctx context.Context, d wire.Delivery) error {
	if err := p.arriving.Ack(d.Tag, false); err != nil {
		return err
	}
	probe, _ := wire.ProbeOf(d.Headers)
	if probe.Number == p.followed.Load() {
		if err := p.sendUnrouted(ctx); err != nil {
			return err
		}
	}
	select {
	case p.arrivals <- probe.Number:
	case <-ctx.Done():
	}
	return nil
}

// sendUnrouted sends an unroutable probe until the broker has kept it: a stream without a leader
// refuses it for a moment, or does not answer. If that takes too long, the core ends the epoch.
func (p *prober) sendUnrouted(ctx context.Context) error {
	for {
		err := p.send(ctx, wire.UnroutedProbe())
		if !errors.Is(err, broker.ErrNacked) && !errors.Is(err, context.DeadlineExceeded) {
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
	return fmt.Errorf("scheduler: reading what was delivered: %w", err)
}

// errRead ends a reading of the journal in which everything was read.
var errRead = errors.New("all is read")
