package millrace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// message is what is published, and where.
type message struct {
	exchange, key string
	amqp.Publishing
}

// window is how many publishes may be unconfirmed on a channel.
const window = 1000

// errLost: the channel or connection is gone, and what became of the message is not known.
var errLost = errors.New("connection lost")

// returnedError: the broker has returned the message, for no queue takes it. It has not stored it.
type returnedError struct{ why string }

func (e *returnedError) Error() string { return ErrRefused.Error() + ": " + e.why }
func (e *returnedError) Unwrap() error { return ErrRefused }

func isReturned(err error) bool {
	var returned *returnedError
	return errors.As(err, &returned)
}

// publisher is a channel in confirm mode. It is safe for concurrent use.
type publisher struct {
	ch      *amqp.Channel
	slots   chan struct{} // full: as much is unconfirmed as may be
	returns chan amqp.Return
	closes  chan *amqp.Error

	mu       sync.Mutex
	sent     uint64
	why      *amqp.Error       // the broker closed the channel
	returned map[string]string // correlation id → why
}

func newPublisher(conn *amqp.Connection) (*publisher, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("millrace: open a channel: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		ch.Close()
		return nil, fmt.Errorf("millrace: ask for confirms: %w", err)
	}
	p := &publisher{ch: ch, slots: make(chan struct{}, window), returned: map[string]string{}}
	// As large as the window, so that the library never waits for us: a return comes before its confirm, and who waits for the
	// confirm reads the return.
	p.returns = ch.NotifyReturn(make(chan amqp.Return, window))
	p.closes = ch.NotifyClose(make(chan *amqp.Error, 1))
	return p, nil
}

// answer is a publish that the broker has yet to answer.
type answer struct {
	p           *publisher
	id          string
	exchange    string
	confirm     *amqp.DeferredConfirmation
	unconfirmed func()
}

// send publishes. It waits while the window is full, at most until ctx ends.
func (p *publisher) send(ctx context.Context, m message) (*answer, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	p.sent++
	m.CorrelationId = strconv.FormatUint(p.sent, 10)
	p.mu.Unlock()
	confirm, err := p.ch.PublishWithDeferredConfirm(m.exchange, m.key, true, false, m.Publishing)
	if err != nil {
		<-p.slots
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return &answer{p: p, id: m.CorrelationId, exchange: m.exchange, confirm: confirm, unconfirmed: sync.OnceFunc(func() { <-p.slots })}, nil
}

// wait returns nil when the broker has the message, ErrRefused when it will not have it (a *returnedError when it returned it), errLost
// when nobody knows, and ctx's error when that ends first.
func (a *answer) wait(ctx context.Context) error {
	ok, err := a.confirm.WaitContext(ctx)
	if err != nil {
		go func() { // its place in the window is taken until the broker answers or the channel goes
			<-a.confirm.Done()
			a.unconfirmed()
		}()
		return err
	}
	a.unconfirmed()
	why, returned := a.p.whyReturned(a.id)
	switch {
	case returned:
		return &returnedError{why}
	case ok:
		return nil
	case a.p.ch.IsClosed():
		return a.p.whyClosed(a.exchange)
	}
	return fmt.Errorf("%w: it answered nack", ErrRefused)
}

// whyReturned tells whether a message came back that has been answered.
func (p *publisher) whyReturned(id string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		select {
		case r, open := <-p.returns:
			if open {
				p.returned[r.CorrelationId] = fmt.Sprintf("%d %s: exchange %q, routing key %q", r.ReplyCode, r.ReplyText, r.Exchange, r.RoutingKey)
				continue
			}
		default:
		}
		why, found := p.returned[id]
		delete(p.returned, id)
		return why, found
	}
}

// whyClosed returns why a message was not answered when the channel closed: ErrRefused if there is no such exchange, or the user
// may not write to it, for both of which the broker closes the channel; else errLost.
func (p *publisher) whyClosed(exchange string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case e, open := <-p.closes:
		if open {
			p.why = e
		}
	default:
	}
	if exchange != "" && p.why != nil && (p.why.Code == amqp.NotFound || p.why.Code == amqp.AccessRefused) {
		return fmt.Errorf("%w: %d %s", ErrRefused, p.why.Code, p.why.Reason)
	}
	return errLost
}

// publish sends and waits for the answer.
func (p *publisher) publish(ctx context.Context, m message) error {
	a, err := p.send(ctx, m)
	if err != nil {
		return err
	}
	return a.wait(ctx)
}
