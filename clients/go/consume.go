package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// attachment is a lane on one channel. Only its loop opens and cancels consumers.
type attachment struct {
	*lane
	s         *session
	ch        *amqp.Channel
	gone      chan struct{} // closed with the channel
	in        chan arrival
	consumers []*consumer // by queue; nil if it is not consumed
	resting   []bool      // by queue: given back to other workers, until a slot is idle
	missing   []bool      // by queue: it does not exist; the next tick looks again
	hand      *hand
}

type consumer struct {
	queue int
	tag   string
}

// patience is how long a delivery waits for a slot before it is given back to other workers.
const patience = 5 * time.Second

var errCancelled = errors.New("millrace: the broker cancelled a consumer")

// serve consumes a lane's queues until the connection is lost. It opens a new channel when one is
// lost.
func (l *lane) serve(s *session) {
	var pause pauses
	for {
		started := time.Now()
		err := l.attach(s)
		if s.isLost() {
			return
		}
		if time.Since(started) > longestPause {
			pause = pauses{}
		}
		if l.w.stopped.isClosed() {
			return
		}
		l.w.cfg.Logger.Warn("millrace: a lane lost its channel, it opens another", "lane", l.name, "error", err)
		if pause.wait(s.ctx) != nil {
			return
		}
	}
}

func (l *lane) attach(s *session) error {
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("millrace: open a channel: %w", err)
	}
	a := &attachment{
		lane: l, s: s, ch: ch, gone: make(chan struct{}), in: make(chan arrival, l.prefetch()), consumers: make([]*consumer, len(l.queues)),
		resting: make([]bool, len(l.queues)), missing: make([]bool, len(l.queues)), hand: newHand(l),
	}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	why := make(chan error, 1)
	go func() {
		if e := <-closes; e != nil {
			why <- e
		} else {
			why <- errLost
		}
		close(a.gone)
	}()
	if err = ch.Qos(l.prefetch(), 0, false); err == nil {
		err = a.loop()
	}
	if !s.ending() {
		ch.Close()
	}
	select {
	case <-a.gone:
		return errors.Join(err, <-why)
	default:
		return err
	}
}

// prefetch returns the number of slots, or twice that if the lane chooses between queues. Otherwise
// the next job of the first queue would still be on its way when a slot becomes free, and a job of
// another queue would run.
func (l *lane) prefetch() int {
	if len(l.queues) == 1 {
		return cap(l.slots)
	}
	return 2 * cap(l.slots)
}

// loop hands deliveries to slots. Every job begins here, so no job of a paused queue can begin.
func (a *attachment) loop() error {
	if err := a.adjust(); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var slot chan<- struct{}
		if a.hand.count > 0 {
			slot = a.slots
		}
		var err error
		select {
		case slot <- struct{}{}:
			a.begin()
		case x := <-a.in:
			err = a.arrived(x)
		case <-a.changed:
			err = a.adjust()
		case <-tick.C:
			a.share()
			err = a.adjust()
		case <-a.gone:
			return errLost
		case <-a.s.ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (a *attachment) begin() {
	queue, x := a.hand.take()
	t := &task{
		w: a.w, s: a.s, lane: a.lane, lost: a.gone, d: x.d, queue: a.queues[queue], begun: time.Now(), settled: make(chan struct{}),
		base: context.Background(),
	}
	a.w.running.add(t)
	go func() {
		defer func() {
			a.w.running.remove(t)
			<-a.slots
		}()
		t.work()
	}()
}

func (a *attachment) arrived(x arrival) error {
	current := a.consumers[x.from.queue] == x.from
	switch {
	case x.end && current:
		return errCancelled
	case x.end:
		return nil
	case current:
		a.hand.put(x.from.queue, x)
		return nil
	}
	return x.d.Nack(false, true) // it arrived after its consumer was cancelled
}

// adjust consumes the queues that should be consumed, and cancels the consumers of the others.
func (a *attachment) adjust() error {
	for q, name := range a.queues {
		wanted := !a.w.quieted.isClosed() && !a.w.isPaused(name) && !a.resting[q]
		var err error
		switch consumed := a.consumers[q] != nil; {
		case wanted && !consumed:
			err = a.consume(q)
		case !wanted && consumed:
			err = a.cancel(q)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// share gives back deliveries that wait long because the lane is busy with other queues. It
// consumes these queues again when the lane is idle.
func (a *attachment) share() {
	if len(a.queues) == 1 {
		return
	}
	idle := a.hand.count == 0 && len(a.slots) < cap(a.slots)
	for q := range a.queues {
		oldest, waits := a.hand.oldest(q)
		switch {
		case idle:
			a.resting[q] = false
		case waits && time.Since(oldest) > patience:
			a.resting[q] = true
		}
	}
}

func (a *attachment) cancel(q int) error {
	c := a.consumers[q]
	a.consumers[q] = nil
	if err := a.ch.Cancel(c.tag, false); err != nil {
		return fmt.Errorf("millrace: stop consuming %s: %w", a.queues[q], err)
	}
	for _, x := range a.hand.empty(q) {
		if err := x.d.Nack(false, true); err != nil {
			return fmt.Errorf("millrace: hand back to %s: %w", a.queues[q], err)
		}
	}
	return nil
}

func (a *attachment) consume(q int) error {
	found, err := a.s.ensureQueue(a.queues[q])
	if err != nil {
		return err
	}
	if !found && !a.missing[q] {
		a.w.cfg.Logger.Warn("millrace: a queue does not exist yet", "queue", a.queues[q])
	}
	a.missing[q] = !found
	if !found {
		return nil
	}
	c := &consumer{queue: q, tag: fmt.Sprintf("%s-%d", a.w.process, a.s.nextTag())}
	deliveries, err := a.ch.Consume(wire.QueuePrefix+a.queues[q], c.tag, false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("millrace: consume %s: %w", a.queues[q], err)
	}
	a.consumers[q] = c
	go a.forward(c, deliveries)
	return nil
}

// forward reads a consumer's deliveries to their end, so that the library never blocks.
func (a *attachment) forward(c *consumer, deliveries <-chan amqp.Delivery) {
	for d := range deliveries {
		a.deliver(arrival{from: c, d: d, at: time.Now()})
	}
	a.deliver(arrival{from: c, end: true})
}

func (a *attachment) deliver(x arrival) {
	select {
	case a.in <- x:
	case <-a.gone:
	case <-a.s.ctx.Done():
	}
}

// ensureQueue reports whether a queue exists. It declares a missing queue, but never one that
// exists, which may have other arguments.
func (s *session) ensureQueue(name string) (bool, error) {
	full := wire.QueuePrefix + name
	found, err := s.exists(full)
	if found || err != nil || s.w.cfg.NoDeclare {
		return found, err
	}
	if err := s.declare(full); err != nil {
		s.w.cfg.Logger.Warn("millrace: a queue could not be declared", "queue", full, "error", err)
	}
	return s.exists(full)
}

// exists asks on its own channel, because the answer may close it.
func (s *session) exists(queue string) (bool, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return false, fmt.Errorf("millrace: open a channel: %w", err)
	}
	defer ch.Close()
	_, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.NotFound {
		return false, nil
	}
	if errors.As(err, &said) && said.Code == amqp.ResourceLocked {
		return true, nil
	}
	return err == nil, err
}

// declare declares a classic queue with priorities. It names the type only where the virtual host
// has another default type. Elsewhere the arguments equal those of other programs.
func (s *session) declare(queue string) error {
	err := s.declareWith(queue, amqp.Table{"x-max-priority": wire.MaxPriority})
	var said *amqp.Error
	if errors.As(err, &said) && said.Code == amqp.PreconditionFailed {
		err = s.declareWith(queue, amqp.Table{"x-max-priority": wire.MaxPriority, "x-queue-type": "classic"})
	}
	return err
}

// declareWith declares on its own channel, because a refusal closes it.
func (s *session) declareWith(queue string, args amqp.Table) error {
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("millrace: open a channel: %w", err)
	}
	defer ch.Close()
	_, err = ch.QueueDeclare(queue, true, false, false, false, args)
	return err
}
