package broker

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Send publishes and waits for the confirm: nil, ErrNacked, ErrLost, ErrUnpublishable, or ctx's error, after which the message may
// still arrive. Its confirm is not reported by Confirms.
func (p *Publisher) Send(ctx context.Context, m wire.Message) error {
	_, err := call(ctx, p.conn, func() (struct{}, error) { return struct{}{}, p.send(m, false) }, nil)
	return err
}

// SendMandatory is Send, and ErrReturned if no queue took the message.
func (p *Publisher) SendMandatory(ctx context.Context, m wire.Message) error {
	_, err := call(ctx, p.conn, func() (struct{}, error) {
		returned := p.returns.watch(m)
		err := p.send(m, true)
		if isBack := returned(); isBack && err == nil {
			err = fmt.Errorf("broker: publish to %q by %q: %w", m.Exchange, m.Key, ErrReturned)
		}
		return struct{}{}, err
	}, nil)
	return err
}

func (p *Publisher) send(m wire.Message, mandatory bool) error {
	answer, err := p.publish(m, mandatory)
	if err != nil {
		return err
	}
	<-answer.Done() // the library ends this with the channel at the latest
	switch known, ack := outcome(p.ch, answer); {
	case ack:
		return nil
	case known:
		return fmt.Errorf("broker: publish to %q by %q: %w", m.Exchange, m.Key, ErrNacked)
	default:
		<-p.ended
		return fmt.Errorf("broker: publish to %q by %q: %w: %w", m.Exchange, m.Key, ErrLost, p.Err())
	}
}

// Reply answers a command: to its reply_to, if that is a name only the broker can have made (a client could else have us write, with
// our user id, where only Millrace may), with its correlation id and nothing else. Nobody waits for the answer of an answer: one that
// cannot be delivered is dropped.
func (p *Publisher) Reply(ctx context.Context, d wire.Delivery, body []byte) error {
	if !strings.HasPrefix(d.ReplyTo, "amq.") {
		return nil
	}
	m := wire.Message{Key: d.ReplyTo, CorrelationID: d.CorrelationID, Body: body}
	_, err := call(ctx, p.conn, func() (struct{}, error) {
		_, err := p.publish(m, true)
		return struct{}{}, err
	}, nil)
	return err
}

// returns finds out which mandatory messages came back. The broker sends the message itself back, before its confirm and without its
// tag, so messages are recognised by what they hold.
type returns struct {
	mu   sync.Mutex
	sent []*mandatory
}

type mandatory struct {
	message  wire.Message
	returned bool
}

func (r *returns) expect(m wire.Message) *mandatory {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := &mandatory{message: m}
	r.sent = append(r.sent, sent)
	return sent
}

// watch is expect; what it gives tells, once, whether the message was returned.
func (r *returns) watch(m wire.Message) (returned func() bool) {
	sent := r.expect(m)
	return func() bool {
		defer r.forget(sent)
		return r.has(sent)
	}
}

func (r *returns) forget(sent *mandatory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = slices.DeleteFunc(r.sent, func(other *mandatory) bool { return other == sent })
}

// mark notes that a message came back, and tells whether anybody waits to hear of that.
func (r *returns) mark(back amqp.Return) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sent := range r.sent {
		m := sent.message
		if !sent.returned && m.Exchange == back.Exchange && m.Key == back.RoutingKey && m.CorrelationID == back.CorrelationId && bytes.Equal(m.Body, back.Body) {
			sent.returned = true
			return true
		}
	}
	return false
}

// has tells whether a confirmed message was returned: what comes back is dealt with before anybody hears of its confirm.
func (r *returns) has(sent *mandatory) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sent.returned
}
