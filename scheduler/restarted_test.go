package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// bounce restarts the broker: only its application if possible. The node then keeps running, and so
// does its uptime.
func bounce(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	if !v.Node(t).HasErlang() {
		v.Stop(t)
		v.Restart(t)
		return
	}
	require.NoError(t, v.Node(t).StopApp(t.Context()))
	require.NoError(t, v.Node(t).StartApp(t.Context()))
}

// If the application restarted, the journal may be the only copy of fires that are not known to be
// confirmed. The witness is gone then, and shows that.
func TestFiresLostByRestartAreRepeated(t *testing.T) {
	t.Parallel()
	v := brokertest.Own(t)
	m := reign(t, v)
	ensure(t, v, "q")
	lost, kept := names("lost", 3), names("kept", 3)
	schedule(t, v, time.Now(), "q", append(lost, kept...)...)
	for _, jid := range kept {
		require.NoError(t, m.fire(wire.ExchangeFire, jid, "q"))
	}
	for _, jid := range lost {
		require.NoError(t, m.fire("", jid, "q")) // the journal's copy, without the queue's
	}
	m.die()
	bounce(t, v)

	s := start(t, v, options{identity: "a"}).leads(t)
	w := work(t, v, "q", nil)
	w.gets(t, lost...)
	for _, jid := range kept {
		brokertest.Eventually(t, func() bool { return w.times(jid) == 2 }, "%s is fired again: it is not known to have arrived", jid)
	}
	require.Equal(t, 6, journal(t, v)[wire.OpRefired])

	const jobs = 2000
	many := names("many", jobs)
	schedule(t, v, time.Now().Add(500*time.Millisecond), "q", many[:jobs/2]...)
	schedule(t, v, time.Now().Add(time.Second), "q", many[jobs/2:]...)
	brokertest.Eventually(t, func() bool { return w.distinct() > 100 }, "fires flow")
	bounce(t, v)
	work(t, v, "q", w)
	brokertest.Eventually(t, func() bool { return w.hasAll(many) }, "all come")
	brokertest.Eventually(t, func() bool {
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(doubts) == 0 && s.entries.Total(wire.ScheduledJobs) == 0
	}, "nothing is in doubt")
	require.Less(t, s.Status().Counters.Epochs, int64(5))
}

// A message that makes the broker close the channel is found among those in flight, and parked.
func TestJobThatClosesChannelIsParked(t *testing.T) {
	t.Parallel()
	v := brokertest.OwnErlang(t)
	first := start(t, v, options{identity: "first"}).leads(t)
	w := work(t, v, "q", nil)
	due := time.Now().Add(10 * time.Second) // until then all must be pending, on a busy machine too
	schedule(t, v, due, "q", names("j", 20)...)
	v.Publish(t, "", wire.ScheduledJobs, scheduled("poison", due, `{"class":"C","queue":"q","args":["`+strings.Repeat("x", 60_000)+`"]}`))
	schedule(t, v, due, "q", names("k", 20)...)
	brokertest.Eventually(t, func() bool { return first.entries.Total(wire.ScheduledJobs) == 41 }, "they are pending")
	first.stop()
	v.Eval(t, "application:set_env(rabbit, max_message_size, 50000), persistent_term:put(max_message_size, 50000).") // before 4.0, and since

	second := start(t, v, options{identity: "second"})
	w.gets(t, append(names("j", 20), names("k", 20)...)...)
	brokertest.Eventually(t, func() bool {
		found, err := second.entries.Find(wire.ScheduledJobs, "poison")
		require.NoError(t, err)
		return len(found) == 1 && strings.Contains(found[0].Parked, "connection died")
	}, "it is parked, with its reason")
	schedule(t, v, time.Now(), "q", "last")
	w.gets(t, "last")
	require.Equal(t, int64(3), second.Status().Counters.Epochs, "it ended two")
	require.Zero(t, w.times("poison"))
}
