package main

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker/queues"
)

// sidecar has the parts that outlive a connection.
type sidecar struct {
	*state

	cfg       sidecarSettings
	log       *slog.Logger
	broker    connect.Broker
	mgmt      *management
	queues    *queues.Watch
	asker     *scheduler.Asker
	shared    *sharedConn                         // for leases
	messages  *sharedConn                         // for delayed messages
	local     bool                                // only this machine can connect to the API
	scheduler atomic.Pointer[scheduler.Scheduler] // nil before the first connection
}

func newSidecar(cfg sidecarSettings, log *slog.Logger, st *state, local bool) *sidecar {
	s := &sidecar{state: st, cfg: cfg, log: log, broker: cfg.Connect(&hosts.Order{}, log), queues: queues.New(nil), local: local}
	s.mgmt = &management{broker: s.broker, log: log, absent: func() {
		if cfg.auth() == "" && cfg.ManagementURL == "" && local {
			s.warnOpen()
		}
	}}
	s.shared, s.messages = s.newSharedConn("leases"), s.newSharedConn("delivers messages")
	s.asker = scheduler.NewAsker(s.brokerConfig("asks"))
	return s
}

// newSharedConn returns a connection that is named for what it does.
func (s *sidecar) newSharedConn(does string) *sharedConn {
	return &sharedConn{dial: func(ctx context.Context) (*broker.Conn, error) { return broker.Dial(ctx, s.brokerConfig(does)) }}
}

// brokerConfig returns the configuration of a connection that is named for what it does.
func (s *sidecar) brokerConfig(does string) broker.Config {
	c := s.broker.Config(does)
	c.QueueType = broker.QueueType(s.cfg.QueueType)
	return c
}

// Phases of the scheduler.
const (
	phaseConnecting = "connecting" // until it has a connection and has declared the topology
	phaseLeading    = "leading"
)

// leader returns this sidecar's part in leadership.
func (s *sidecar) leader() scheduler.Status {
	if scheduling := s.scheduler.Load(); scheduling != nil {
		return scheduling.Status()
	}
	return scheduler.Status{Epoch: -1, Phase: phaseConnecting}
}

func (s *sidecar) brokerState() (connected bool, product, version string) {
	product, version = s.asker.Broker()
	return s.asker.Connected(), product, version
}

// warnOpen logs that the API asks for no password.
func (s *sidecar) warnOpen() {
	who := "anyone who can connect"
	if s.local {
		who = "anyone on this machine"
	}
	s.log.Warn("millrace: auth=none: " + who + " can use the API; --auth and --management-url change that")
}
