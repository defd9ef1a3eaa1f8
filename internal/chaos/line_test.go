package chaos

import (
	"context"
	"encoding/json"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// line is a plain AMQP client that sends commands. It reconnects when necessary.
type line struct {
	url     string
	conn    *amqp.Connection
	ch      *amqp.Channel
	answers <-chan amqp.Delivery
	returns chan amqp.Return
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

func (l *line) open() (err error) {
	if l.conn != nil && !l.conn.IsClosed() && !l.ch.IsClosed() {
		return nil
	}
	l.close()
	if l.conn, err = amqp.DialConfig(l.url, amqp.Config{Dial: amqp.DefaultDial(2 * time.Second), Heartbeat: 10 * time.Second}); err != nil {
		l.conn = nil
		return err
	}
	if l.ch, err = l.conn.Channel(); err != nil {
		return err
	}
	l.returns = l.ch.NotifyReturn(make(chan amqp.Return, 16))
	if err := l.ch.Confirm(false); err != nil {
		return err
	}
	l.answers, err = l.ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	return err
}

const answerWithin = 5 * time.Second

// publish reports whether the broker confirmed a message.
func (l *line) publish(stream string, m amqp.Publishing) bool {
	if l.open() != nil {
		l.close()
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	confirm, err := l.ch.PublishWithDeferredConfirmWithContext(ctx, "", stream, false, false, m)
	if err != nil {
		l.close()
		return false
	}
	ok, err := confirm.WaitContext(ctx)
	return ok && err == nil
}

// ask sends a command to the leader's inbox and waits for the answer.
func (l *line) ask(cmd wire.Command) wire.Reply {
	unanswered := wire.Reply{Status: wire.StatusUnknown}
	if l.open() != nil {
		l.close()
		return unanswered
	}
	body, err := json.Marshal(cmd)
	if err != nil {
		return unanswered
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	m := amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: cmd.ID, Body: body}
	if err := l.ch.PublishWithContext(ctx, "", wire.LeaderInbox, true, false, m); err != nil {
		l.close()
		return unanswered
	}
	for {
		select {
		case r, open := <-l.returns:
			if !open || r.CorrelationId == cmd.ID {
				return wire.Reply{Status: wire.StatusUnavailable} // there is no leader
			}
		case d, open := <-l.answers:
			var r wire.Reply
			if !open || json.Unmarshal(d.Body, &r) != nil {
				l.close()
				return unanswered
			}
			if d.CorrelationId == cmd.ID {
				return r
			}
		case <-ctx.Done():
			return unanswered
		}
	}
}
