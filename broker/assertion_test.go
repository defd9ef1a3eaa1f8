package broker

import (
	"context"
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// jobs.fire without jobs.route journals what it does not deliver. On a broker that asks an alternate exchange only while nothing else
// has matched, jobs.route must not come back behind the journal.
func TestTheWayToTheQueuesIsRepaired(t *testing.T) {
	for _, ordered := range []bool{false, true} { // RabbitMQ, and as if it were LavinMQ
		v := brokertest.New(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := Dial(ctx, Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		defer conn.Close()
		m, err := OpenManagement(ctx, v.ManagementURL(), v.Name, nil)
		require.NoError(t, err)
		defer m.Close()
		conn.features.AlternateNeedsOrder = ordered
		pub, err := conn.Publisher(ctx)
		require.NoError(t, err)
		defer pub.Close()
		unrouted := 0
		assert := func(m *Management, repaired bool, why string) {
			top, err := conn.AssertTopology(ctx, m)
			require.NoError(t, err)
			require.Equal(t, repaired && m == nil, top.FireRepaired, why)
			require.Equal(t, repaired && m != nil, top.FireUnrouted, why)
			require.Equal(t, repaired, len(top.Findings) == 1, why)
			routed, err := conn.FireIsRouted(ctx, m)
			require.Equal(t, err == nil && !top.FireUnrouted, routed, why)
			if top.FireUnrouted { // whoever leads mends it
				require.NoError(t, conn.RebuildFire(ctx))
			}
			require.NoError(t, pub.Send(ctx, wire.Message{Exchange: wire.ExchangeFire, Key: "nowhere"}))
			unrouted++
			require.Equal(t, unrouted, v.QueueLength(t, wire.Unrouted), why)
			bound, err := boundTo(ctx, wire.ExchangeFire, v)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{wire.ExchangeRoute, wire.Journal}, bound, why)
		}
		assert(m, false, "a new jobs.fire is bound in order")
		assert(m, false, "nothing is amiss")
		ch := v.Channel(t)
		require.NoError(t, ch.ExchangeDelete(wire.ExchangeRoute, false, false))
		assert(nil, true, "jobs.route was made again")
		require.NoError(t, ch.ExchangeUnbind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil))
		assert(m, true, "the binding was gone")
		require.NoError(t, ch.ExchangeDelete(wire.ExchangeFire, false, false))
		assert(m, false, "a new jobs.fire is bound in order")
		m.password = "wrong"
		assert(m, false, "the management API is a help, not a need")
	}
}

// The journal is bound last: whatever reaches it has a way to its queue, also where the making of the bindings ends half way.
func TestNothingIsJournaledThatIsNotRouted(t *testing.T) {
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := Dial(ctx, Config{AMQPURL: v.AMQPURL(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.AssertTopology(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, v.Channel(t).ExchangeDelete(wire.ExchangeRoute, false, false))
	require.Error(t, conn.RebuildFire(ctx), "there is no jobs.route to bind to")
	bound, err := boundTo(ctx, wire.ExchangeFire, v)
	require.NoError(t, err)
	require.Empty(t, bound)
}

// boundTo lists what an exchange is bound to.
func boundTo(ctx context.Context, exchange string, v *brokertest.Vhost) ([]string, error) {
	var said []struct{ Destination string }
	err := v.Try(ctx, "GET", "/api/exchanges/"+v.Name+"/"+exchange+"/bindings/source", nil, &said)
	var names []string
	for _, b := range said {
		names = append(names, b.Destination)
	}
	return names, err
}

// A stream whose node is not up yet is waited for. It must never be taken for missing: an empty journal would be made in its place.
func TestAStreamThatIsNotUpYetIsWaitedFor(t *testing.T) {
	v := brokertest.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := Dial(ctx, Config{AMQPURL: v.AMQPURL()})
	require.NoError(t, err)
	defer conn.Close()
	a := &assertion{conn: conn}
	down := &amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - home node 'a@b' of durable queue 'job_journal' in vhost '/' is down or inaccessible", Server: true}

	tries := 0
	created, err := a.assert(ctx, "queue x", true, func(*amqp.Channel) error {
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
	_, err = a.assert(short, "queue x", true, func(*amqp.Channel) error { return down }, func(*amqp.Channel) error {
		t.Error("it must not be declared")
		return nil
	})
	require.ErrorIs(t, err, down)
	require.Empty(t, a.top.Created)
}
