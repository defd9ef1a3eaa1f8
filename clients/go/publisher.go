package millrace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// message is a message and its destination.
type message struct {
	exchange, key string
	asks          bool // for the leader's answer
	amqp.Publishing
}

// directReply is the address at which the leader's answers arrive on the channel that asked.
const directReply = "amq.rabbitmq.reply-to"

// window is how many publishes may be unconfirmed on a channel.
const window = 1000

// errLost is returned when the channel or connection is gone, and it is not known what became of
// the message.
var errLost = errors.New("connection lost")

// returnedError is returned when the broker returned the message because no queue takes it. The
// broker has not stored the message.
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
	slots   chan struct{} // one for each unconfirmed message
	returns chan amqp.Return
	closes  chan *amqp.Error

	mu       sync.Mutex
	sent     uint64
	why      *amqp.Error       // why the broker closed the channel
	returned map[string]string // correlation id → why

	asked     map[string]chan []byte // correlation id → the leader's answer; nil until a message asks
	listening chan struct{}          // closed when answers are consumed
	silent    chan struct{}          // closed when no answer comes any more
	unheard   error                  // why not; valid after silent is closed
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
	p := &publisher{ch: ch, slots: make(chan struct{}, window), returned: map[string]string{}, listening: make(chan struct{}), silent: make(chan struct{})}
	// The channel is as large as the window, so that the library never blocks. A return comes
	// before its confirm, and the goroutine that waits for the confirm reads the return.
	p.returns = ch.NotifyReturn(make(chan amqp.Return, window))
	p.closes = ch.NotifyClose(make(chan *amqp.Error, 1))
	return p, nil
}

// answer is a publish that the broker has not answered yet.
type answer struct {
	p           *publisher
	id          string
	exchange    string
	confirm     *amqp.DeferredConfirmation
	unconfirmed func()
	reply       <-chan []byte // the leader's answer, if the message asks for one
}

// send publishes a message. While the window is full it waits, until ctx ends.
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
	var reply <-chan []byte
	if m.asks {
		m.ReplyTo = directReply
		var err error
		if reply, err = p.expect(ctx, m.CorrelationId); err != nil {
			<-p.slots
			return nil, err
		}
	}
	confirm, err := p.ch.PublishWithDeferredConfirm(m.exchange, m.key, true, false, m.Publishing)
	if err != nil {
		<-p.slots
		return nil, fmt.Errorf("%w: %w", errLost, err)
	}
	return &answer{p: p, id: m.CorrelationId, exchange: m.exchange, confirm: confirm, unconfirmed: sync.OnceFunc(func() { <-p.slots }), reply: reply}, nil
}

// expect prepares for the leader's answer to a message. The first call consumes the answers.
func (p *publisher) expect(ctx context.Context, id string) (<-chan []byte, error) {
	reply := make(chan []byte, 1)
	p.mu.Lock()
	if p.asked == nil {
		p.asked = map[string]chan []byte{}
		go p.takeReplies()
	}
	p.asked[id] = reply
	p.mu.Unlock()
	select {
	case <-p.listening:
		return reply, nil
	case <-p.silent:
		return nil, p.unheard
	case <-ctx.Done():
		p.forget(id)
		return nil, ctx.Err()
	}
}

func (p *publisher) takeReplies() {
	defer close(p.silent)
	p.unheard = errLost
	replies, err := p.ch.Consume(directReply, "", true, false, false, false, nil)
	if err != nil {
		var said *amqp.Error
		if errors.As(err, &said) && said.Code == amqp.AccessRefused { // LavinMQ asks for a permission
			p.unheard = fmt.Errorf("%w: the leader's answers: %s", ErrRefused, said.Reason)
		}
		return
	}
	close(p.listening)
	for d := range replies {
		if reply := p.forget(d.CorrelationId); reply != nil {
			reply <- d.Body
		}
	}
}

// forget expects no answer to a message any more, and returns where it was expected, if it was.
func (p *publisher) forget(id string) chan<- []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	reply := p.asked[id]
	delete(p.asked, id)
	return reply
}

// wait returns nil if the broker has the message, ErrRefused if the broker refused it, and errLost
// if neither is known. A message that the broker returned is a *returnedError. If ctx ends first,
// wait returns ctx's error.
func (a *answer) wait(ctx context.Context) error {
	err := a.confirmed(ctx)
	if err != nil {
		a.p.forget(a.id)
	}
	return err
}

func (a *answer) confirmed(ctx context.Context) error {
	ok, err := a.confirm.WaitContext(ctx)
	if err != nil {
		// It keeps its place in the window until the broker answers or the channel is gone.
		go func() {
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
	return fmt.Errorf("%w: it answered nack: the queue is full or unavailable, try again later", ErrRefused)
}

// answered returns the leader's answer.
func (a *answer) answered(ctx context.Context) ([]byte, error) {
	defer a.p.forget(a.id)
	select {
	case body := <-a.reply:
		return body, nil
	case <-a.p.silent:
		return nil, a.p.unheard
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// whyReturned reports whether an answered message was returned, and why.
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

// whyClosed returns why a message was not answered when the channel closed. It returns ErrRefused
// if there is no such exchange, or if the user may not write to it, because the broker closes the
// channel for both. Otherwise it returns errLost.
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

// publish sends a message and waits for the answer.
func (p *publisher) publish(ctx context.Context, m message) error {
	a, err := p.send(ctx, m)
	if err != nil {
		return err
	}
	return a.wait(ctx)
}
