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

// publish publishes messages in their order. It reports which of them the broker has confirmed, and
// why the others failed. What was sent is waited for, also by a bridge that is stopping: it would come
// twice otherwise.
func (l *link) publish(messages []wire.Message) (confirmed []bool, failed []error) {
	confirmed, failed = make([]bool, len(messages)), make([]error, len(messages))
	open := map[uint64]int{}
	l.pub.Batch(func() {
		for n, m := range messages {
			tag, err := l.pub.Publish(m)
			if err == nil {
				open[tag] = n
			} else if failed[n] = err; !errors.Is(err, broker.ErrUnpublishable) {
				return
			}
		}
	})
	limit := time.NewTimer(confirmWithin)
	defer limit.Stop()
	read := func(confirms []broker.Confirm) {
		for _, c := range confirms {
			n, ours := open[c.Tag]
			if !ours {
				continue
			}
			delete(open, c.Tag)
			if confirmed[n] = c.Ack && !c.Returned; !confirmed[n] {
				failed[n] = refusal(messages[n], c)
			}
		}
	}
	for len(open) > 0 {
		select {
		case confirms := <-l.pub.Confirms():
			read(confirms)
		case <-l.pub.Done():
			return confirmed, l.open(open, failed, l.pub.Err())
		case <-limit.C:
			return confirmed, l.open(open, failed, fmt.Errorf("the broker did not confirm within %s", confirmWithin))
		}
	}
	return confirmed, failed
}

// open gives the messages without an answer their error.
func (*link) open(open map[uint64]int, failed []error, err error) []error {
	for _, n := range open {
		failed[n] = err
	}
	return failed
}

func refusal(m wire.Message, c broker.Confirm) error {
	switch {
	case c.Returned && m.Exchange == "":
		return fmt.Errorf("the broker has no stream %s: start a sidecar (millrace serve), which makes it", m.Key)
	case c.Returned:
		return fmt.Errorf("no queue takes jobs for %q: start a sidecar (millrace serve), which makes it", m.Key)
	}
	return fmt.Errorf("the broker refused a message for %q", m.Key)
}

// err returns the first error after which the rest of a batch must be published again.
func (*link) err(failed []error) error {
	for _, err := range failed {
		if err != nil && !errors.Is(err, broker.ErrUnpublishable) {
			return err
		}
	}
	return nil
}
