package queues

import (
	"context"
	"errors"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// Source is where a snapshot comes from: the management API, or passive declares.
type Source func(ctx context.Context) (queues []broker.QueueInfo, alarms []string, err error)

var errUnreached = errors.New("queues: the broker has not been reached yet")

// Managed asks the management API.
func Managed(m *broker.Management) Source {
	return func(ctx context.Context) ([]broker.QueueInfo, []string, error) {
		all, err := m.Queues(ctx)
		if err != nil {
			return nil, nil, err
		}
		alarms, err := m.Alarms(ctx)
		return all, alarms, err
	}
}

// maxDeclared bounds the queues that are declared passively for one snapshot.
const maxDeclared = 200

// Declared declares passively the queues whose names, without prefix, are known.
func Declared(cfg broker.Config, names func() []string) Source {
	return func(ctx context.Context) ([]broker.QueueInfo, []string, error) {
		conn, err := broker.Dial(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		defer conn.Close()
		var all []broker.QueueInfo
		for i, name := range names() {
			if i == maxDeclared {
				break
			}
			full := wire.QueuePrefix + name
			ready, consumers, err := conn.Queues().Depth(ctx, full)
			var refusal *broker.QueueError
			if errors.As(err, &refusal) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			all = append(all, broker.QueueInfo{Name: full, Messages: int64(ready), Ready: int64(ready), Consumers: int64(consumers)})
		}
		return all, nil, nil
	}
}
