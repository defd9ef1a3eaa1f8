package scheduler_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// Most probes are routable. The unroutable ones, which jobs.gated keeps, are few.
func TestProbesLeaveFewRecords(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	s := start(t, v, options{identity: "a"}).leads(t)
	probes := func(stream string) (n int) {
		for _, d := range v.ReadStream(t, stream) {
			if _, is := wire.ProbeOf(d.Headers); is {
				n++
			}
		}
		return n
	}
	began := time.Now()
	for n := 0; s.entries.State().Probe < 6; n++ {
		jid := fmt.Sprintf("job-%d", n)
		schedule(t, v, time.Now(), "q", jid)
		w.gets(t, jid)
	}
	all := probes(wire.Journal)
	require.GreaterOrEqual(t, all, 6)
	inTime := int(time.Since(began) / (5 * time.Second))
	require.LessOrEqual(t, probes(wire.Gated), 2+inTime, "one at the beginning of the epoch, and one every five seconds")
}

// A client unbinds jobs.fire from the queues. Later fires are journaled and confirmed, and reach no
// queue. They are entered again. Fires that are known to have arrived are not.
func TestMisroutedFiresAreRepeated(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	before := start(t, v, options{identity: "before"}).leads(t)
	schedule(t, v, time.Now(), "q", names("before", 3)...)
	w.gets(t, names("before", 3)...)
	before.stop()
	var log bytes.Buffer
	s := start(t, v, options{identity: "a", log: &log}).leads(t)
	s.isRouted(t) // otherwise they might be misrouted too
	unbound := func(ch *amqp.Channel) {
		require.NoError(t, ch.ExchangeUnbind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil))
	}
	unbound(v.Channel(t))
	schedule(t, v, time.Now(), "q", names("misrouted", 3)...)
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 0 }, "they seem to be fired")
	require.Zero(t, w.times("misrouted-0"))

	w.gets(t, names("misrouted", 3)...)
	brokertest.Eventually(t, func() bool { return s.Status().Counters.Epochs == 2 && s.Status().Leader }, "another epoch has begun")
	schedule(t, v, time.Now(), "q", "after")
	w.gets(t, append(names("before", 3), "after")...)
	brokertest.Eventually(t, func() bool {
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(doubts) == 0
	}, "nothing is in doubt")
	require.Equal(t, 1, journal(t, v)[wire.TypeMisrouted])
	s.stop()
	require.Contains(t, log.String(), "a binding is missing; it is repaired, and jobs sent since the last probe that arrived are delivered again")
}
