package broker

import (
	"context"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// Send publishes a message and waits for the confirm. It returns nil, ErrNacked, ErrLost,
// ErrUnpublishable, or ctx's error, after which the message may still arrive. Confirms does not
// report the message.
func (p *Publisher) Send(ctx context.Context, m wire.Message) error {
	return p.wait(ctx, func() error {
		return p.send(m, func() (*amqp.DeferredConfirmation, error) { return p.publish(m, false) })
	})
}

// SendMandatory is Send, and returns ErrReturned if no queue took the message.
func (p *Publisher) SendMandatory(ctx context.Context, m wire.Message) error {
	return p.mandatory(ctx, m, func() (*amqp.DeferredConfirmation, error) { return p.publish(m, true) })
}

// Deliver is SendMandatory for a message of an application, with all its properties.
func (p *Publisher) Deliver(ctx context.Context, exchange, key string, msg amqp.Publishing) error {
	m := wire.Message{Exchange: exchange, Key: key, CorrelationID: msg.CorrelationId, Body: msg.Body} // as returns knows it
	return p.mandatory(ctx, m, func() (*amqp.DeferredConfirmation, error) {
		if err := msg.Headers.Validate(); err != nil {
			return nil, fmt.Errorf("broker: publish: %w: %w", ErrUnpublishable, err)
		}
		if err := fits(msg.Headers, p.conn.amqp.Config.FrameSize); err != nil {
			return nil, err
		}
		return p.publishWith(m, msg, true)
	})
}

func (p *Publisher) wait(ctx context.Context, fn func() error) error {
	_, err := call(ctx, p.conn, func() (struct{}, error) { return struct{}{}, fn() }, nil)
	return err
}

func (p *Publisher) mandatory(ctx context.Context, m wire.Message, publish func() (*amqp.DeferredConfirmation, error)) error {
	return p.wait(ctx, func() error {
		returned := p.returns.watch(m)
		err := p.send(m, publish)
		if isBack := returned(); isBack && err == nil {
			err = fmt.Errorf("broker: publish to %q by %q: %w", m.Exchange, m.Key, ErrReturned)
		}
		return err
	})
}

// send waits for the confirm of what publish sends.
func (p *Publisher) send(m wire.Message, publish func() (*amqp.DeferredConfirmation, error)) error {
	answer, err := publish()
	if err != nil {
		return err
	}
	<-answer.Done() // the library closes this when the channel ends, at the latest
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

// Reply answers a command. It publishes body to the reply_to of the command, with its correlation
// id and no other property of it.
//
// It answers only to a reply_to that the broker has generated. Otherwise a client could make
// Millrace write, with Millrace's user id, where only Millrace may. Reply does not wait for a
// confirm. An answer that cannot be delivered is dropped.
func (p *Publisher) Reply(ctx context.Context, d wire.Delivery, body []byte) error {
	if !strings.HasPrefix(d.ReplyTo, "amq.") {
		return nil
	}
	m := wire.Message{Key: d.ReplyTo, CorrelationID: d.CorrelationID, Body: body}
	return p.wait(ctx, func() error {
		_, err := p.publish(m, true)
		return err
	})
}
