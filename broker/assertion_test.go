package broker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// EnsureRouting repairs the route from jobs.fire to the queues, for each part that may be missing.
// It binds in the order that LavinMQ needs: LavinMQ asks an alternate exchange only if nothing else
// has matched.
func TestRouteToQueuesIsRepaired(t *testing.T) {
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: v.AMQPURL()})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Topology().Assert(ctx)
	require.NoError(t, err)
	ch := v.Channel(t)
	_, err = conn.Probes().Follow(ctx, wire.ProbePrefix+"early")
	require.True(t, broker.IsUnroutable(err), "there is no jobs.route yet: %v", err)
	require.True(t, broker.IsUnroutable(conn.Topology().BindJournal(ctx)))

	follow := func() *broker.Consumer {
		arriving, err := conn.Probes().Follow(ctx, wire.ProbePrefix+"a")
		require.NoError(t, err)
		return arriving
	}
	require.NoError(t, conn.Topology().EnsureRouting(ctx))
	arriving := follow()
	for _, c := range []struct {
		gone   string
		remove func() error
		routed bool // fires still arrive
	}{
		{"nothing", func() error { return nil }, true},
		{"jobs.fire", func() error { return ch.ExchangeDelete(wire.ExchangeFire, false, false) }, false},
		{"jobs.route", func() error { return ch.ExchangeDelete(wire.ExchangeRoute, false, false) }, false},
		{"the binding of jobs.route", func() error { return ch.ExchangeUnbind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil) }, false},
		{"the binding of the journal", func() error { return ch.QueueUnbind(wire.Journal, "", wire.ExchangeFire, nil) }, true},
		{"the exchange jobs.unrouted", func() error { return ch.ExchangeDelete(wire.Unrouted, false, false) }, false},
		{"the binding of jobs.gated", func() error { return ch.QueueUnbind(wire.Gated, "", wire.Unrouted, nil) }, false},
		{"jobs.bury", func() error { return ch.ExchangeDelete(wire.ExchangeBury, false, false) }, true},
	} {
		require.NoError(t, c.remove(), c.gone)
		require.Equal(t, c.routed, probe(ctx, t, conn, arriving), "without %s", c.gone)
		require.NoError(t, conn.Topology().EnsureRouting(ctx), c.gone)
		require.NoError(t, arriving.Close())
		arriving = follow()
		require.True(t, probe(ctx, t, conn, arriving), "%s exists again", c.gone)
		for exchange, want := range map[string][]string{
			wire.ExchangeFire: {wire.ExchangeRoute, wire.Journal}, wire.ExchangeBury: {wire.DeadJobs, wire.Journal}, wire.Unrouted: {wire.Gated},
		} {
			bound, err := boundTo(ctx, exchange, v)
			require.NoError(t, err)
			require.ElementsMatch(t, want, bound, "%s after %s", exchange, c.gone)
		}
	}
	require.NoError(t, arriving.Close())
}

// probe reports whether a probe arrives, and a job whose queue does not exist is kept.
func probe(ctx context.Context, t *testing.T, conn *broker.Conn, arriving *broker.Consumer) bool {
	t.Helper()
	pub, err := conn.Publisher(ctx)
	require.NoError(t, err)
	defer pub.Close()
	if err := pub.SendMandatory(ctx, wire.Probe{Epoch: 1, Number: 2, Confirmed: 3, Routed: 4}.To(wire.ProbePrefix+"a")); err != nil {
		require.True(t, broker.IsUnroutable(err), "%v", err)
		return false
	}
	select {
	case d := <-arriving.Deliveries():
		p, ok := wire.ProbeOf(d.Headers)
		require.True(t, ok)
		require.Equal(t, wire.Probe{Epoch: 1, Number: 2, Confirmed: 3, Routed: 4}, p)
		require.NoError(t, arriving.Ack(d.Tag, false))
	case <-time.After(2 * time.Second):
		return false
	}
	if err := pub.SendMandatory(ctx, wire.UnroutedProbe()); err != nil {
		require.True(t, broker.IsUnroutable(err), "%v", err)
		return false
	}
	return true
}

// The journal is bound last. So a fire that reaches the journal has a route to its queue, even if
// the binding failed half-way.
func TestFireWithoutRouteIsNotJournaled(t *testing.T) {
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: v.AMQPURL()})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Topology().Assert(ctx)
	require.NoError(t, err)
	require.NoError(t, conn.Topology().EnsureRouting(ctx))
	require.NoError(t, v.Channel(t).ExchangeDelete(wire.ExchangeRoute, false, false))
	require.Error(t, conn.Topology().RebuildFire(ctx), "there is no jobs.route to bind to")
	bound, err := boundTo(ctx, wire.ExchangeFire, v)
	require.NoError(t, err)
	require.Empty(t, bound)
}

// boundTo returns the destinations that are bound to an exchange.
func boundTo(ctx context.Context, exchange string, v *brokertest.Vhost) ([]string, error) {
	var said []struct{ Destination string }
	err := v.Try(ctx, "GET", "/api/exchanges/"+v.Name+"/"+exchange+"/bindings/source", nil, &said)
	var names []string
	for _, b := range said {
		names = append(names, b.Destination)
	}
	return names, err
}

// A stream whose node is not up yet is waited for. It must not count as missing, or an empty
// journal would be created in its place.
func TestAssertionWaitsForUnavailableStream(t *testing.T) {
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := broker.Dial(ctx, broker.Config{AMQPURL: v.AMQPURL()})
	require.NoError(t, err)
	defer conn.Close()
	a := broker.NewAssertion(conn)
	down := &amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - home node 'a@b' of durable queue 'job_journal' in vhost '/' is down or inaccessible", Server: true}

	tries := 0
	created, err := a.Assert(ctx, "queue x", true, func(*amqp.Channel) error {
		if tries++; tries < 4 {
			return down
		}
		return nil
	}, func(*amqp.Channel) error { return nil })
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, 4, tries)

	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err = a.Assert(short, "queue x", true, func(*amqp.Channel) error { return down }, func(*amqp.Channel) error {
		t.Error("the stream must not be declared")
		return nil
	})
	require.True(t, errors.Is(err, down) || errors.Is(err, context.DeadlineExceeded), err)
	require.Empty(t, a.Created())
}
