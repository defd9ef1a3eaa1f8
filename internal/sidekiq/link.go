package sidekiq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// link is a connection to the broker.
type link struct {
	conn *broker.Conn
	pub  *broker.Publisher
}

const (
	dialWithin    = 20 * time.Second
	confirmWithin = 10 * time.Second
)

func openLink(ctx context.Context, cfg broker.Config) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := broker.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	pub, err := conn.StrictPublisher(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &link{conn, pub}, nil
}

func (l *link) close() {
	if l != nil {
		_ = l.conn.Close()
	}
}

// refusal is the error of a message that the broker did not take. The connection can still be used.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func refusalOf(m wire.Message, c broker.Confirm) error {
	switch {
	case c.Returned && m.Exchange == "":
		return &refusal{fmt.Sprintf("the broker has no stream %s: start a sidecar (millrace serve), which makes it", m.Key)}
	case c.Returned:
		return &refusal{fmt.Sprintf("there is no queue for %q: start a worker that declares it, or let a sidecar set its policies", m.Key)}
	}
	return &refusal{fmt.Sprintf("the broker refused a message for %q: its queue may be full", m.Key)}
}

// fate is what became of a message.
type fate int

const (
	unknown fate = iota // not sent, refused for now, or without an answer
	confirmed
	impossible // no broker takes it
)

// publish publishes messages in their order, and returns their fates. The error is a *refusal,
// unless the connection cannot be used any more. What was sent is waited for, also by a bridge
// that is stopping: it would come twice otherwise.
func (l *link) publish(messages []wire.Message) (fates []fate, failed error) {
	fates = make([]fate, len(messages))
	open := map[uint64]int{}
	l.pub.Batch(func() {
		for n, m := range messages {
			tag, err := l.pub.Publish(m)
			switch {
			case errors.Is(err, broker.ErrUnpublishable):
				fates[n] = impossible
			case err != nil:
				failed = err
				return
			default:
				open[tag] = n
			}
		}
	})
	limit := time.NewTimer(confirmWithin)
	defer limit.Stop()
	for len(open) > 0 {
		select {
		case confirms := <-l.pub.Confirms():
			for _, c := range confirms {
				n, known := open[c.Tag]
				if !known {
					continue
				}
				delete(open, c.Tag)
				if c.Ack && !c.Returned {
					fates[n] = confirmed
				} else if failed == nil {
					failed = refusalOf(messages[n], c)
				}
			}
		case <-l.pub.Done():
			return fates, l.pub.Err()
		case <-limit.C:
			if _, _, blocked := l.conn.Blocked(); !blocked {
				return fates, fmt.Errorf("the broker did not confirm within %s", confirmWithin)
			}
			limit.Reset(confirmWithin) // it takes what was sent when its alarm ends
		}
	}
	return fates, failed
}
