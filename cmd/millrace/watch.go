package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/wire"
)

// watchQueues says where queues are looked at: mgmt is nil where there is no management API.
func (s *sidecar) watchQueues(mgmt *broker.Management) {
	s.mgmt.Store(mgmt)
	if mgmt != nil {
		s.queues.From(queues.Managed(mgmt), true)
		return
	}
	s.queues.From(queues.Declared(s.brokerConfig("looks at queues"), s.queueNames), false)
}

// queueNames are the queues that are known by name: from entries, workers and what was done today.
func (s *sidecar) queueNames() []string {
	names := map[string]bool{wire.DefaultQueue: true}
	for _, stream := range wire.EntryStreams {
		for name := range s.entries.ByQueue(stream) {
			names[name] = true
		}
	}
	for name := range processes.Serving(s.workers.List()) {
		names[name] = true
	}
	for _, name := range s.metrics.Queues(time.Now()) {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// pauseQueue has the broker pause a queue, where it can.
func (s *sidecar) pauseQueue(ctx context.Context, queue string, paused bool) error {
	mgmt := s.mgmt.Load()
	if mgmt == nil {
		return nil
	}
	return mgmt.PauseQueue(ctx, wire.QueuePrefix+queue, paused)
}

// onBroker lends a connection to the broker.
func (s *sidecar) onBroker(ctx context.Context, do func(*broker.Conn) error) error {
	conn, err := broker.Dial(ctx, s.brokerConfig("acts"))
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(conn)
}

// everyQueue stands for all queues that have no limit of their own.
const everyQueue = "*"

// defaultSLO is how long a job may wait in a queue for which --queue-slo says nothing.
const defaultSLO = 10 * time.Minute

// queueSLO returns how long a job may wait in a queue; 0 means as long as it likes.
func (s *sidecarSettings) queueSLO(queue string) time.Duration {
	for _, name := range []string{queue, everyQueue} {
		if limit, given := s.QueueSLO[name]; given {
			return limit
		}
	}
	return defaultSLO
}
