package broker

import (
	"context"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Publisher is a channel in confirm mode. It is safe for concurrent use. The order of the calls
// decides the tags, so one goroutine should own it.
type Publisher struct {
	conn     *Conn
	ch       *amqp.Channel
	confirms *confirms
	returns  returns
	ended    chan struct{} // closed when the channel is gone and err is set
	done     chan struct{} // closed after ended, when all known confirms have been read
	discard  sync.Once
	strict   bool // Confirms reports what no queue took

	mu      sync.Mutex
	err     error
	nowhere error // a fire or burial came back: nothing was bound
	closed  bool
}

// Publisher opens a channel in confirm mode.
func (c *Conn) Publisher(ctx context.Context) (*Publisher, error) {
	return c.publisher(ctx, false, func(*amqp.Channel) error { return nil })
}

// StrictPublisher opens a Publisher whose Confirms also report the messages that no queue took. The
// broker confirms those like any other message.
func (c *Conn) StrictPublisher(ctx context.Context) (*Publisher, error) {
	return c.publisher(ctx, true, func(*amqp.Channel) error { return nil })
}

func (c *Conn) publisher(ctx context.Context, strict bool, prepare func(*amqp.Channel) error) (*Publisher, error) {
	ch, err := c.open(ctx, func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		return prepare(ch)
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("broker: open a publisher: %w", err)
	}
	return c.publisherOn(ch, strict), nil
}

// publisherOn returns a Publisher on a channel that is in confirm mode.
func (c *Conn) publisherOn(ch *amqp.Channel, strict bool) *Publisher {
	p := &Publisher{conn: c, ch: ch, strict: strict, confirms: newConfirms(ch), ended: make(chan struct{}), done: make(chan struct{})}
	// The library sends a return to both listeners in turn, and only then reads the confirm that
	// follows. watch reads the second listener after it has handled the return. So each return is
	// handled before its confirm is reported.
	returned, dealt := ch.NotifyReturn(make(chan amqp.Return)), ch.NotifyReturn(make(chan amqp.Return))
	c.socket.handled.add(p.confirms)
	go p.watch(returned, dealt, ch.NotifyClose(make(chan *amqp.Error, 1)))
	go func() {
		p.confirms.run(c.closed)
		c.socket.handled.remove(p.confirms)
		<-p.ended
		close(p.done)
	}()
	return p
}

// watch reads the library's notifications until the channel is gone.
func (p *Publisher) watch(returned, dealt <-chan amqp.Return, closes <-chan *amqp.Error) {
	for {
		select {
		case r, open := <-returned:
			if !open {
				returned = nil
				continue
			}
			if !p.returns.mark(r) && mustBeRouted(r.Exchange) {
				p.unroutable(r)
			}
			select {
			case <-dealt:
			case cause := <-closes: // the library skips a listener that keeps it waiting
				p.end(cause)
				return
			}
		case cause := <-closes:
			p.end(cause)
			return
		}
	}
}

func (p *Publisher) end(cause *amqp.Error) {
	connClosed := p.conn.isClosing()
	p.mu.Lock()
	if p.err = endOf("publisher", p.closed || connClosed, cause); p.nowhere != nil && !p.closed {
		p.err = p.nowhere
	}
	p.mu.Unlock()
	p.confirms.end()
	close(p.ended)
}

// mustBeRouted reports whether something must be bound to an exchange: see EnsureRouting.
func mustBeRouted(exchange string) bool {
	return exchange == wire.ExchangeFire || exchange == wire.ExchangeBury
}

// unroutable ends the channel because neither a queue nor the journal took a fire or burial. The
// broker confirms the message nevertheless. So no confirm is reported any more, and no reader takes
// the message for done.
func (p *Publisher) unroutable(r amqp.Return) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nowhere != nil {
		return
	}
	p.nowhere = fmt.Errorf("broker: publish to %q by %q: %w", r.Exchange, r.RoutingKey, ErrReturned)
	p.confirms.halt()
	go func() { _ = p.ch.Close() }() // not awaited: Close needs watch to read on
}

// Publish sends a message and returns the tag that its Confirm will have. It waits for the network
// if the broker does not read, and never for the confirm.
//
// After ErrUnpublishable, nothing was sent and the publisher can still be used. After any other
// error, the message may have been sent and the publisher cannot be used any more. The publisher
// ends with ErrReturned when nothing at all takes a fire or burial.
func (p *Publisher) Publish(m wire.Message) (tag uint64, err error) {
	if !p.confirms.expect() {
		return 0, p.Err()
	}
	returned := func() bool { return false }
	if p.strict {
		returned = p.returns.watch(m)
	}
	answer, err := p.publish(m, p.strict || mustBeRouted(m.Exchange))
	p.confirms.wait(answer, returned)
	if err != nil {
		return 0, err
	}
	return answer.DeliveryTag, nil
}

// Batch runs fn, and sends what is published meanwhile together, which costs less than separate
// writes. No message waits for long.
func (p *Publisher) Batch(fn func()) { p.conn.socket.buffer.batch(fn) }

func (p *Publisher) publish(m wire.Message, mandatory bool) (*amqp.DeferredConfirmation, error) {
	msg, err := publishing(m, p.conn.user, p.conn.amqp.Config.FrameSize)
	if err != nil {
		return nil, err
	}
	return p.publishWith(m, msg, mandatory)
}

func (p *Publisher) publishWith(m wire.Message, msg amqp.Publishing, mandatory bool) (*amqp.DeferredConfirmation, error) {
	answer, err := p.ch.PublishWithDeferredConfirm(m.Exchange, m.Key, mandatory, false, msg)
	if err != nil {
		return nil, fmt.Errorf("broker: publish: %w: %w", ErrLost, err)
	}
	return answer, nil
}

// Confirms reports the outcome of each message that Publish sent, each tag once, as the broker
// answers. One receive returns all answers since the last one. Tags that are not reported when Done
// is closed are in doubt. The channel is never closed. A slow reader delays only Done.
func (p *Publisher) Confirms() <-chan []Confirm { return p.confirms.out }

// Done is closed when the channel is gone, for any reason, and Confirms has reported everything
// that was known by then. Closing the publisher or the connection discards what it has not
// reported.
func (p *Publisher) Done() <-chan struct{} { return p.done }

// Err returns why the channel is gone, or nil while it is not.
func (p *Publisher) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Close ends the channel, and discards what Confirms has not reported. A second call has no effect.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.discard.Do(func() { close(p.confirms.discard) })
	return p.conn.closeChannel(p.ch, p.done)
}
