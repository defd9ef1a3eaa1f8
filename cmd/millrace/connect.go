package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
)

const connectAtMostEvery = 5 * time.Second

// How long a broker may refuse before that is final, and how often it is asked meanwhile. A broker
// that starts or dies may refuse too.
const (
	refusedFor   = 5 * time.Second
	refusedEvery = time.Second
)

// connection is what is known of the broker after the first connection.
type connection struct {
	mgmt      *broker.Management // nil: there is none
	transport streams.Transport
	streamURL string // of the stream listener; empty: none is known
}

// connect connects to the broker for the first time, however long that takes, and finds out what it
// is. An error says that ctx has ended, or is a permanentError.
func (s *sidecar) connect(ctx context.Context) (*connection, error) {
	retry := backoff.NewExponentialBackOff()
	retry.MaxInterval = connectAtMostEvery
	var logged string
	var loggedAt, refusedAt time.Time
	for {
		c, err := s.tryConnect(ctx)
		var permanent *permanentError
		if err == nil || errors.As(err, &permanent) {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		refusal := broker.Refusal(err)
		switch {
		case refusal == nil:
			refusedAt = time.Time{}
		case refusedAt.IsZero():
			refusedAt = time.Now()
		case time.Since(refusedAt) > refusedFor:
			return nil, &permanentError{err: refusal, remedy: connect.RefusedRemedy(refusal)}
		}
		if refusal != nil {
			_ = pause.For(ctx, refusedEvery)
			continue
		}
		if err.Error() != logged || time.Since(loggedAt) > remindEvery {
			logged, loggedAt = err.Error(), time.Now()
			s.log.Warn("millrace: the broker cannot be reached; trying again until it can (millrace doctor says what to do)", "error", err)
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
}

func (s *sidecar) tryConnect(ctx context.Context) (*connection, error) {
	if err := s.identifyBroker(ctx); err != nil {
		return nil, err
	}
	mgmt, err := s.mgmt.await(ctx)
	if err != nil {
		return nil, err
	}
	transport, address, err := s.broker.OpenStreams(ctx, mgmt)
	if err != nil {
		if mgmt != nil {
			mgmt.Close()
		}
		return nil, err
	}
	return &connection{mgmt, transport, address}, nil
}

// identifyBroker finds out what the broker is, and whether Millrace may declare what it needs.
func (s *sidecar) identifyBroker(ctx context.Context) error {
	conn, err := broker.Dial(ctx, s.brokerConfig("looks"))
	if err != nil {
		return err
	}
	defer conn.Close()
	s.log.Info("millrace: broker reached", "product", conn.Product(), "version", conn.Version(), "vhost", conn.VHost(), "user", conn.User())
	if err := conn.Features().CheckQueueType(broker.QueueType(s.cfg.QueueType)); err != nil {
		return &permanentError{err: fmt.Errorf("--queue-type: %w", err)}
	}
	may, err := conn.Topology().MayConfigure(ctx)
	if err != nil || may {
		return err
	}
	return missingPermissions(ctx, conn)
}

// useStreams starts the reading of streams, once the journal exists. It uses the stream listener
// only if that belongs to the broker that AMQP reaches.
func (s *sidecar) useStreams(ctx context.Context, first *connection) error {
	transport := first.transport
	err := s.checkListener(ctx, first)
	switch {
	case ctx.Err() != nil:
		_ = transport.Close()
		return nil
	case err == nil:
	case s.cfg.StreamURL != "":
		_ = transport.Close()
		return &permanentError{err: err, remedy: connect.StreamRemedy}
	default:
		s.log.Warn("millrace: the stream listener that the management API names is another broker's, and is not used; --stream-url says where "+
			"this broker's is", "error", err)
		_ = transport.Close()
		if transport, err = s.broker.AwaitAMQPStreams(ctx); err != nil {
			return nil // ctx has ended
		}
	}
	s.log.Info("millrace: streams are read", "protocol", transport.Name())
	s.source.use(transport)
	return nil
}

func (s *sidecar) checkListener(ctx context.Context, first *connection) error {
	if first.transport.Name() != connect.Native {
		return nil
	}
	amqp, err := s.broker.AwaitAMQPStreams(ctx)
	if err != nil {
		return err
	}
	defer amqp.Close()
	return s.broker.CheckListener(ctx, first.transport, amqp, first.streamURL)
}
