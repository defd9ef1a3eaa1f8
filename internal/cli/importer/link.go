package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// answerWithin is how long the leader may take to answer before it is asked again.
const answerWithin = 5 * time.Second

// link is one connection to the broker, with a queue for the answers of the leader.
type link struct {
	conn    *broker.Conn
	pub     *broker.Publisher
	answers *broker.Consumer
	replyTo string

	mu      sync.Mutex
	asked   int64
	waiting map[string]chan wire.Reply
}

func openLink(ctx context.Context, cfg broker.Config) (*link, error) {
	conn, err := broker.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, waiting: map[string]chan wire.Reply{}}
	if l.pub, err = conn.Publisher(ctx); err == nil {
		l.replyTo, l.answers, err = conn.Answers(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	go l.receive()
	return l, nil
}

// ended reports whether the connection, or a channel of it, is gone.
func (l *link) ended() bool {
	select {
	case <-l.conn.Done():
	case <-l.pub.Done():
	case <-l.answers.Done():
	default:
		return false
	}
	return true
}

// receive hands out answers until the connection ends.
func (l *link) receive() {
	for {
		select {
		case <-l.conn.Done():
			return
		case d, open := <-l.answers.Deliveries():
			if !open {
				return
			}
			_ = l.answers.Ack(d.Tag, false) // an answer that comes again has no one waiting
			var r wire.Reply
			if json.Unmarshal(d.Body, &r) == nil {
				l.deliver(d.CorrelationID, r)
			}
		}
	}
}

func (l *link) deliver(id string, r wire.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.waiting[id]; answer != nil {
		answer <- r
		delete(l.waiting, id)
	}
}

func (l *link) expect() (id string, answer chan wire.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	id, answer = strconv.FormatInt(l.asked, 10), make(chan wire.Reply, 1)
	l.waiting[id] = answer
	return id, answer
}

func (l *link) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

var (
	errNoLeader = errors.New("no sidecar leads: start one (millrace serve)")
	errNoAnswer = errors.New("the leader did not answer in time")
)

// ask has the leader carry out a command.
func (l *link) ask(ctx context.Context, body []byte) (wire.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	id, answer := l.expect()
	defer l.forget(id)
	err := l.pub.SendMandatory(ctx, wire.Message{Key: wire.LeaderInbox, ReplyTo: l.replyTo, CorrelationID: id, Body: body})
	if errors.Is(err, broker.ErrReturned) {
		return wire.Reply{}, errNoLeader
	}
	if err != nil {
		return wire.Reply{}, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return wire.Reply{}, errNoAnswer
	case <-l.conn.Done():
		return wire.Reply{}, fmt.Errorf("the connection to the broker ended: %w", l.conn.Err())
	}
}

// publish publishes a record to its stream, and returns when the broker has confirmed it.
func (l *link) publish(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := l.pub.SendMandatory(ctx, wire.Message{
		Key: e.stream(), MessageID: wire.Property(e.jid), Type: wire.Property(e.class), Timestamp: time.Now(), Body: e.body,
	})
	if errors.Is(err, broker.ErrReturned) {
		return fmt.Errorf("the broker has no stream %s: start a sidecar (millrace serve), which makes it", e.stream())
	}
	return err
}
