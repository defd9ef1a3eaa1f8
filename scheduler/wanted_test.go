package scheduler

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// The log has one line when a failure begins and one when it ends, also if it is seen often.
func TestDegradationsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	d := degradations{log: slog.New(slog.NewTextHandler(&log, nil))}
	begun := time.Unix(100, 0)
	for i := range 3 {
		now := begun.Add(time.Duration(i) * time.Second)
		d.set(now, wantedPart, []Degraded{{Subject: "queue b", Problem: "404", Costs: "no list", Node: "rabbit@b"}, {Subject: "queue a"}})
	}
	all := d.list()
	require.Len(t, all, 2)
	require.Equal(t, Degraded{"queue b", "404", "no list", "rabbit@b", begun}, all[1])
	d.set(begun.Add(time.Minute), wantedPart, []Degraded{{Subject: "queue a"}})
	require.Equal(t, 1, strings.Count(log.String(), `scheduler: degraded: no list" subject="queue b" problem=404 node=rabbit@b`), log.String())
	require.Equal(t, 1, strings.Count(log.String(), `no longer degraded" subject="queue b" after=1m0s`), log.String())
	require.Equal(t, 3, strings.Count(log.String(), "\n"))
	d.set(begun, wantedPart, nil)
	require.Empty(t, d.list())
}

func TestFindingsAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	var f findings
	one := broker.Finding{Subject: "a", Problem: "differs", Remedy: "delete it"}
	f.logNew(logger, []broker.Finding{one})
	f.logNew(logger, []broker.Finding{one})
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	f.logNew(logger, nil)
	f.logNew(logger, []broker.Finding{one})
	require.Equal(t, 2, strings.Count(log.String(), "\n"))
}

func TestNodeOfUnavailableQueue(t *testing.T) {
	nodes := map[string]string{"jobs.letters": "rabbit@c"}
	for _, c := range []struct {
		code int
		text string
		want string
	}{
		{404, "NOT_FOUND - home node 'rabbit@b' of durable queue 'jobs.letters' in vhost '/' is down or inaccessible", "rabbit@b"},
		{404, "NOT_FOUND - failed to perform operation on queue 'jobs.letters' in vhost '/' due to timeout", "rabbit@c"},
		{403, "ACCESS_REFUSED", ""},
	} {
		err := fmt.Errorf("look: %w", &amqp.Error{Code: c.code, Reason: c.text})
		require.Equal(t, c.want, degradedBy(broker.Fault{Subject: "queue jobs.letters", Err: err}, nodes).Node, c.text)
	}
	require.Empty(t, degradedBy(broker.Fault{Subject: "exchange jobs.dead", Err: errors.New("x")}, nodes).Node)
}

// A leader creates jobs.direct while another sidecar checks for it. Nothing is degraded by that.
func TestTopologyCreatedMeanwhileIsNotDegraded(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, _ := runner(t, v)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	proxy.Slow(t, 100*time.Millisecond) // connecting takes half a second at least
	s.cfg.Broker.AMQPURL = proxy.URL()
	made := time.AfterFunc(200*time.Millisecond, func() { s.setStatus(func(st *Status) { st.Accepts = true }) })
	s.assertWanted(t.Context())
	require.False(t, made.Stop(), "it checked before the leader was done")
	for _, d := range s.Status().Degraded {
		require.NotEqual(t, broker.SubjectDirect, d.Subject)
	}
}

// A queue is unavailable that jobs can fire without. It is listed as degraded, and the rest is
// declared. The list is empty when the queue is back.
func TestUnavailableTopologyIsDegraded(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	s, _ := runner(t, v)
	mgmt := management(t, s, v)
	s.mgmt = mgmt
	s.assertWanted(t.Context())
	require.False(t, s.Status().Accepts, "only a leader makes jobs.direct")
	require.Empty(t, s.Status().Degraded, "it was not there before")
	s.setStatus(func(st *Status) { st.Leader = true })
	s.assertWanted(t.Context())
	require.True(t, s.Status().Accepts)
	require.Empty(t, s.Status().Degraded)

	v.SetQueueState(t, wire.Heartbeats, "crashed")
	s.assertWanted(t.Context())
	all := s.Status().Degraded
	require.Len(t, all, 1)
	require.Equal(t, "queue heartbeats", all[0].Subject)
	require.NotEmpty(t, all[0].Costs)
	require.NotEmpty(t, all[0].Node, "the management API knows it")
	v.SetQueueState(t, wire.Heartbeats, "live")
	require.NoError(t, v.Channel(t).ExchangeDelete(wire.ExchangeDirect, false, false))
	s.setStatus(func(st *Status) { st.Leader = false })
	s.assertWanted(t.Context())
	all = s.Status().Degraded
	require.Len(t, all, 1, "a client deleted it")
	require.Equal(t, broker.SubjectDirect, all[0].Subject)
	s.setStatus(func(st *Status) { st.Leader = true })
	s.assertWanted(t.Context())
	require.Empty(t, s.Status().Degraded)
}
