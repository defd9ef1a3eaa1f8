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

// watchQueues chooses how queues are observed. mgmt is nil if there is no management API.
func (s *sidecar) watchQueues(mgmt *broker.Management) {
	s.mgmt.current.Store(mgmt)
	if mgmt != nil {
		s.queues.From(queues.Managed(mgmt), true)
		return
	}
	s.queues.From(queues.Declared(s.brokerConfig("looks at queues"), s.queueNames), false)
}

// queueNames returns the queues that are known by name: from entries, from workers and from today's
// metrics.
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

// pauseQueue has the broker pause a queue, if it can.
func (s *sidecar) pauseQueue(ctx context.Context, queue string, paused bool) error {
	mgmt := s.mgmt.current.Load()
	if mgmt == nil {
		return nil
	}
	return mgmt.PauseQueue(ctx, wire.QueuePrefix+queue, paused)
}

// onBroker calls work with a connection of its own.
func (s *sidecar) onBroker(ctx context.Context, work func(*broker.Conn) error) error {
	conn, err := broker.Dial(ctx, s.brokerConfig("acts"))
	if err != nil {
		return err
	}
	defer conn.Close()
	return work(conn)
}
