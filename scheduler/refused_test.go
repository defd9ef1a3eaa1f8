package scheduler_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

var full = map[string]any{"max-length": 2, "overflow": "reject-publish", "dead-letter-exchange": wire.ExchangeDead}

func heldQueue(s *sidecar, queue string) (scheduler.HeldQueue, bool) {
	for _, h := range s.Status().Held {
		if h.Queue == queue {
			return h, true
		}
	}
	return scheduler.HeldQueue{}, false
}

// A fire that its queue refuses is only in the journal. Its entry stays pending, its queue waits,
// and no other queue does.
func TestRefusedFiresStayPending(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "narrow", "wide")
	policy(t, v, "full", `^queue\.narrow$`, "queues", full)
	wide := work(t, v, "wide", nil)
	schedule(t, v, time.Now(), "wide", "wide")
	wide.gets(t, "wide")
	narrow, others := names("narrow", 5), names("wide", 40)
	schedule(t, v, time.Now(), "narrow", narrow...)

	var first scheduler.HeldQueue
	brokertest.Eventually(t, func() (held bool) {
		first, held = heldQueue(s, "narrow")
		return held && s.entries.Total(wire.ScheduledJobs) == 3
	}, "the queue is shown as held, and what it refused is pending")
	require.Contains(t, first.Reason, "refused")
	require.Equal(t, 2, v.QueueLength(t, "queue.narrow"))
	_, otherHeld := heldQueue(s, "wide")
	require.False(t, otherHeld)
	schedule(t, v, time.Now(), "wide", others...)
	wide.gets(t, others...)
	brokertest.Eventually(t, func() bool {
		again, held := heldQueue(s, "narrow")
		return held && again.Since.Equal(first.Since) && again.Until.Sub(first.Until) >= 2*time.Second
	}, "it is tried again, each time later")
	require.LessOrEqual(t, s.Status().Counters.Returned, int64(3+2), "one job at a time tries whether there is room")

	work(t, v, "narrow", nil).gets(t, narrow...)
	brokertest.Eventually(t, func() bool {
		_, held := heldQueue(s, "narrow")
		return !held && s.entries.Total(wire.ScheduledJobs) == 0
	}, "nothing is held any more")
	found := journal(t, v)
	require.GreaterOrEqual(t, found[wire.TypeReturned], 2) // once at first, if its nack came before the others were fired, and once when it was tried again
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}

// The leader dies before it can journal that fires were refused. The journal has the fires, and the
// broker has not restarted. They must still not count as delivered.
func TestRefusedFiresSurviveFailover(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	m := reign(t, v)
	ensure(t, v, "narrow", "wide")
	s := start(t, v, options{identity: "a"})
	brokertest.Eventually(t, func() bool { return s.Status().Phase == "waiting" }, "it stands by")
	policy(t, v, "full", `^queue\.narrow$`, "queues", full) // after the leader read the queues
	brokertest.Eventually(t, func() bool {
		var q struct{ Policy string }
		v.Do(t, http.MethodGet, "/api/queues/"+v.Name+"/queue.narrow", nil, &q)
		return q.Policy == "full"
	}, "the management API shows the policy")
	narrow := names("narrow", 5)
	schedule(t, v, time.Now(), "narrow", narrow...)
	schedule(t, v, time.Now(), "wide", "wide-0")
	refused := 0
	for _, jid := range narrow {
		if err := m.fire(wire.ExchangeFire, jid, "narrow"); errors.Is(err, broker.ErrNacked) {
			refused++
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 3, refused)
	require.NoError(t, m.fire(wire.ExchangeFire, "wide-0", "wide"))
	m.die()

	s.leads(t)
	brokertest.Eventually(t, func() bool {
		_, held := heldQueue(s, "narrow")
		return held
	}, "the queue is held")
	worker := work(t, v, "narrow", nil)
	brokertest.Eventually(t, func() bool { return worker.distinct() == len(narrow) }, "all come")
	for _, jid := range narrow {
		require.LessOrEqual(t, worker.times(jid), 2) // what the queue had taken may come twice: it looks like the others
	}
	work(t, v, "wide", nil).gets(t, "wide-0") // its queue cannot have refused it
	brokertest.Eventually(t, func() bool {
		d, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(d) == 0
	}, "nothing is in doubt any more")
	require.Equal(t, 1, journal(t, v)[wire.TypeDelivered])
}
