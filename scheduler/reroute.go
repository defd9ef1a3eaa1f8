package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// rerouter makes the queues that jobs were published for, and sends the jobs there.
type rerouter struct {
	s       *Scheduler
	conn    *broker.Conn
	relay   *relay
	ensured map[string]time.Time // queues known to exist, and since when
	refused map[string]*refusal
	waiting []wire.Delivery // jobs for refused queues
	rotated time.Time
}

// refusal is a queue that cannot be made now.
type refusal struct {
	reason  string
	since   time.Time
	until   time.Time
	backoff time.Duration
}

const (
	ensuredFor  = time.Second // a queue may be deleted at any time
	maxWaiting  = relayWindow / 2
	rotateEvery = time.Second
)

// reroute runs a rerouter as long as the connection lives.
func (s *Scheduler) reroute(ctx context.Context, conn *broker.Conn, astray func()) error {
	bad := badBodies{}
	return s.keep(ctx, conn, "rerouting", func(ctx context.Context) (err error) {
		defer func() {
			if broker.IsAstray(err) { // jobs.unrouted or jobs.route is missing
				astray()
			}
		}()
		relay, err := openRelay(ctx, conn, wire.Unrouted, bad)
		if err != nil {
			return err
		}
		defer relay.close()
		r := &rerouter{s: s, conn: conn, relay: relay, ensured: map[string]time.Time{}, refused: map[string]*refusal{}}
		relay.nacked = func(d wire.Delivery) { r.refuse(d, "refused: the queue is full or down") }
		err = relay.run(ctx, func(d wire.Delivery) error { return r.take(ctx, d) }, every(ctx, rotateEvery), func() error { return r.retry(ctx) })
		return errors.Join(err, relay.rescue(ctx, s, conn, r.rescued))
	})
}

// take sends one job to its queue.
func (r *rerouter) take(ctx context.Context, d wire.Delivery) error {
	if isProbe(r.conn, d) {
		return r.relay.ack(d)
	}
	name := d.Key
	if err := wire.CheckQueueName(name); err != nil {
		return r.relay.pass(d, r.s.rejection(wire.Unrouted, err.Error(), d.Body))
	}
	if r.relay.bad.isBad(d) {
		return r.relay.pass(d, r.s.rejection(wire.Unrouted, errRefusedTwice.Error(), d.Body))
	}
	if f := r.refused[name]; f != nil && time.Now().Before(f.until) {
		r.waiting = append(r.waiting, d)
		return nil
	}
	if err := r.ensure(ctx, name); err != nil {
		var refusal *broker.QueueError
		if !errors.As(err, &refusal) && !errors.Is(err, errTooMany) && !errors.Is(err, errFatalName) {
			r.s.noteFatal(name, errors.Join(err, r.conn.Err())) // the epoch may have ended before the question
			return err
		}
		r.refuse(d, err.Error())
		return nil
	}
	r.s.setStatus(func(st *Status) { st.Counters.Rerouted++ })
	return r.relay.pass(d, reroute(d))
}

// isProbe tells whether a leader published this to see how far its fires have come: nobody waits for it.
func isProbe(conn *broker.Conn, d wire.Delivery) bool {
	_, probe := wire.ProbeOf(d.Headers)
	return probe && d.UserID == conn.User()
}

// reroute is a job on its way to a queue that did not exist when it was published.
func reroute(d wire.Delivery) wire.Message {
	m := wire.Message{Exchange: wire.ExchangeRoute, Key: d.Key, Priority: d.Priority, Timestamp: d.Timestamp, Body: d.Body,
		Headers: wire.TraceHeaders(wire.TraceOf(d.Headers))}
	if job, err := wire.ParseJob(d.Body); err == nil {
		m.MessageID, m.Type, m.Priority = job.JID, job.Class, max(d.Priority, job.Priority)
	}
	return m
}

// errFatalName is about a queue that nobody asks about any more: RabbitMQ 4 cannot say that one is another connection's alone if its name
// is not ASCII, and closes the connection instead.
var errFatalName = errors.New("scheduler: bad name: the broker closed the connection each time that it was asked about this queue")

func (s *Scheduler) noteFatal(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if broker.Provoked(err) && len(s.fatal) < maxBad {
		s.fatal[name]++
	}
}

func (s *Scheduler) isFatal(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal[name] >= maxKills
}

var errTooMany = errors.New("scheduler: no more queues are made")

func (r *rerouter) ensure(ctx context.Context, name string) error {
	if time.Since(r.ensured[name]) < ensuredFor {
		return nil
	}
	if r.s.isFatal(name) {
		return errFatalName
	}
	if n := r.s.queueCount(name); n >= r.s.cfg.MaxQueues {
		return fmt.Errorf("%w: there are %d, max-queues is %d", errTooMany, n, r.s.cfg.MaxQueues)
	}
	existed, err := r.conn.QueueExists(ctx, wire.QueuePrefix+name)
	if err != nil {
		return err
	}
	if err := r.conn.EnsureQueue(ctx, name); err != nil {
		return err
	}
	if !existed {
		r.s.noteMade(name)
	}
	if len(r.ensured) > r.s.cfg.MaxQueues {
		clear(r.ensured)
	}
	r.ensured[name] = time.Now()
	r.s.countQueue(name)
	if f := r.refused[name]; f != nil {
		delete(r.refused, name)
		r.s.log.Info("scheduler: queue takes jobs again", "queue", name)
		r.report()
	}
	return nil
}

// refuse keeps a job whose queue cannot be made, and tries again later.
func (r *rerouter) refuse(d wire.Delivery, reason string) {
	f := r.refused[d.Key]
	if f == nil {
		f = &refusal{since: time.Now()}
		r.refused[d.Key] = f
		r.s.log.Warn("scheduler: jobs for a queue are held", "queue", d.Key, "reason", reason)
	}
	if time.Now().After(f.until) {
		f.backoff = min(max(2*f.backoff, firstHold), maxHold)
		f.until = time.Now().Add(f.backoff)
	}
	f.reason = reason
	delete(r.ensured, d.Key)
	r.waiting = append(r.waiting, d)
	r.report()
}

// retry looks at the jobs that wait. If they leave no room for others, they go to the end of the queue.
func (r *rerouter) retry(ctx context.Context) error {
	jobs := r.waiting
	r.waiting = nil
	for _, d := range jobs {
		if err := r.take(ctx, d); err != nil {
			return err
		}
	}
	if len(r.waiting) < maxWaiting || time.Since(r.rotated) < rotateEvery {
		return nil
	}
	r.rotated = time.Now()
	jobs, r.waiting = r.waiting, nil
	for _, d := range jobs {
		m := reroute(d)
		m.Exchange = wire.Unrouted
		if err := r.relay.pass(d, m); err != nil {
			return err
		}
	}
	return nil
}

// maxShown bounds how many refused queues are shown, and kept in mind.
const maxShown = 1000

func (r *rerouter) report() {
	if len(r.refused) > maxShown {
		for name, f := range r.refused {
			if time.Since(f.until) > 0 {
				delete(r.refused, name)
			}
		}
	}
	held := make([]HeldQueue, 0, len(r.refused))
	for name, f := range r.refused {
		held = append(held, HeldQueue{Queue: name, Reason: f.reason, Since: f.since, Until: f.until})
		if len(held) == maxShown {
			break
		}
	}
	r.s.setStatus(func(st *Status) { st.Unroutable = held })
}

// queueCount is how many job queues there are, as far as is known; 0 for one that exists.
func (s *Scheduler) queueCount(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.queues[wire.QueuePrefix+name]; exists {
		return 0
	}
	n := 0
	for q := range s.queues {
		if strings.HasPrefix(q, wire.QueuePrefix) {
			n++
		}
	}
	return n
}

func (s *Scheduler) countQueue(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.queues[wire.QueuePrefix+name]; !known {
		s.queues[wire.QueuePrefix+name] = false
	}
}

func now() float64 { return wire.Seconds(time.Now()) }

// every ticks until ctx ends.
func every(ctx context.Context, d time.Duration) <-chan struct{} {
	ticks := make(chan struct{})
	go func() {
		for pause.For(ctx, d) == nil {
			select {
			case ticks <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}()
	return ticks
}
