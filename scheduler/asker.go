package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Asker sends commands to the leader, over a connection of its own.
type Asker struct {
	cfg broker.Config

	mu   sync.Mutex
	line *askConn // nil while there is no connection
}

// NewAsker makes an asker; Run connects it.
func NewAsker(cfg broker.Config) *Asker { return &Asker{cfg: cfg} }

const (
	// answerWithin is how long the leader may take to answer.
	answerWithin = 5 * time.Second
	// askerPingEvery is how often an asker finds out whether a sidecar leads.
	askerPingEvery = time.Second
	// askerPingSoon is the same while none does.
	askerPingSoon = 200 * time.Millisecond
	// askerPingWithin is how long the broker may take to confirm a ping, askerDeafAfter after how
	// long without a confirm another connection is made. RabbitMQ 3.10 loses everything that a
	// channel sends to a quorum queue whose leader died when the channel first used it.
	askerPingWithin = 2 * time.Second
	askerDeafAfter  = 5 * time.Second
	// leaderAwaited is how long a command waits for a sidecar that has just begun to lead. In this
	// time more than one ping is sent.
	leaderAwaited = 500 * time.Millisecond
	// leaderSilent is after how long without an answer no sidecar is taken to lead.
	leaderSilent = 3 * time.Second
)

// pingID is the correlation id of an asker's pings.
const pingID = "ping"

// askConn is one connection to the broker, with a queue for answers.
type askConn struct {
	conn    *broker.Conn
	pub     *broker.Publisher
	answers *broker.Consumer
	name    string

	mu       sync.Mutex
	waiting  map[string]chan wire.Reply
	heard    time.Time // when the leader answered last, or the line was opened
	answered bool      // it has answered
}

// Run keeps the connection until ctx ends.
func (a *Asker) Run(ctx context.Context) error {
	retry := pause.Growing(longestPause)
	for ctx.Err() == nil {
		l, err := openAskConn(ctx, a.cfg)
		if err != nil {
			_ = pause.For(ctx, retry.NextBackOff())
			continue
		}
		retry.Reset()
		a.use(l)
		pinging, stop := context.WithCancel(ctx)
		var pings sync.WaitGroup
		pings.Go(func() { l.ping(pinging) })
		l.run(ctx)
		stop()
		pings.Wait()
		a.use(nil)
		_ = l.conn.Close()
	}
	return nil
}

// Connected reports whether there is a connection to the broker.
func (a *Asker) Connected() bool { return a.current() != nil }

// Broker names the product and version of the broker that is reached, if one is.
func (a *Asker) Broker() (product, version string) {
	if l := a.current(); l != nil {
		return l.conn.Product(), l.conn.Version()
	}
	return "", ""
}

func (a *Asker) use(l *askConn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.line = l
}

func (a *Asker) current() *askConn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line
}

// Ask has the leader carry out a command.
func (a *Asker) Ask(ctx context.Context, cmd wire.Command) wire.Reply {
	l := a.current()
	if l == nil {
		return unavailable("the broker is not reached")
	}
	return l.ask(ctx, cmd)
}

// Publish publishes a message and waits for its confirm; it fails if no queue takes it.
func (a *Asker) Publish(ctx context.Context, m wire.Message) error {
	l := a.current()
	if l == nil {
		return errors.New("scheduler: the broker is not reached")
	}
	return l.pub.SendMandatory(ctx, m)
}

func openAskConn(ctx context.Context, cfg broker.Config) (*askConn, error) {
	conn, err := broker.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l := &askConn{conn: conn, waiting: map[string]chan wire.Reply{}, heard: time.Now()}
	if err := l.open(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *askConn) open(ctx context.Context) (err error) {
	if l.pub, err = l.conn.Publisher(ctx); err != nil {
		return err
	}
	l.name, l.answers, err = l.conn.Answers(ctx)
	return err
}

// ping asks again and again whether a sidecar leads. If the lock is exclusive it does not: without
// a leader the queue is gone, and commands come back.
func (l *askConn) ping(ctx context.Context) {
	if l.conn.Features().ExclusiveLock {
		return
	}
	m := wire.LeaderPing(pingID)
	m.ReplyTo = l.name
	answered := time.Now()
	for next := time.Duration(0); pause.For(ctx, next) == nil; next = l.nextPing() {
		sending, cancel := context.WithTimeout(ctx, askerPingWithin)
		err := l.pub.Send(sending, m) // an error says that no sidecar leads, as silence does
		cancel()
		_, _, blocked := l.conn.Blocked()
		if blocked || !errors.Is(err, context.DeadlineExceeded) {
			answered = time.Now()
		}
		if time.Since(answered) > askerDeafAfter {
			_ = l.conn.Close()
			return
		}
	}
}

func (l *askConn) nextPing() time.Duration {
	if l.unled() != nil {
		return askerPingSoon
	}
	return askerPingEvery
}

// unled is the answer to a command where no sidecar leads, as far as pings show.
func (l *askConn) unled() *wire.Reply {
	l.mu.Lock()
	silent := time.Since(l.heard)
	l.mu.Unlock()
	if silent < leaderSilent || l.conn.Features().ExclusiveLock {
		return nil
	}
	if reason, _, blocked := l.conn.Blocked(); blocked {
		return new(unavailable("the broker has an alarm and blocks publishers: " + reason))
	}
	return &wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: noLeader}
}

// awaitLeader is unled that gives a sidecar that has just begun to lead the time to answer a ping.
func (l *askConn) awaitLeader(ctx context.Context) (reply *wire.Reply) {
	for ends := time.Now().Add(leaderAwaited); ; {
		reply = l.unled()
		if reply == nil || !time.Now().Before(ends) || pause.For(ctx, leaderAwaited/25) != nil {
			return reply
		}
	}
}

const noLeader = "no sidecar leads right now: try again"

// run hands answers to those who wait for them.
func (l *askConn) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.conn.Done():
			return
		case d, open := <-l.answers.Deliveries():
			if !open {
				return
			}
			_ = l.answers.Ack(d.Tag, false)
			l.deliver(d)
		}
	}
}

func (l *askConn) deliver(d wire.Delivery) {
	var r wire.Reply
	if err := json.Unmarshal(d.Body, &r); err != nil {
		return // not the leader's
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Status != wire.StatusUnavailable { // a candidate returns this before it leads
		l.heard, l.answered = time.Now(), true
	}
	if answer := l.waiting[d.CorrelationID]; answer != nil {
		answer <- r
		delete(l.waiting, d.CorrelationID)
	}
}

func (l *askConn) ask(ctx context.Context, cmd wire.Command) wire.Reply {
	if reply := l.awaitLeader(ctx); reply != nil {
		return *reply
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	id := random()
	answer := make(chan wire.Reply, 1)
	l.mu.Lock()
	l.waiting[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiting, id)
	}()
	body, err := json.Marshal(cmd)
	if err != nil {
		return badRequest(err.Error())
	}
	err = l.pub.SendMandatory(ctx, wire.Message{Key: wire.LeaderInbox, ReplyTo: l.name, CorrelationID: id, Body: body})
	if errors.Is(err, broker.ErrReturned) {
		return wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: noLeader}
	}
	if err != nil {
		return unknown(fmt.Sprintf("it is not known whether the command arrived: %v", err))
	}
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
	case <-l.conn.Done():
	}
	return unknown("the leader did not answer in time; repeating the command is safe")
}

func unknown(reason string) wire.Reply {
	return wire.Reply{Status: wire.StatusUnknown, Error: "outcome_unknown", Reason: reason}
}

// askOnce asks over a connection that is made for it.
func askOnce(ctx context.Context, cfg broker.Config, cmd wire.Command) wire.Reply {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := openAskConn(ctx, cfg)
	if err != nil {
		return unavailable(err.Error())
	}
	defer func() { _ = l.conn.Close() }()
	go l.run(ctx)
	return l.ask(ctx, cmd)
}
