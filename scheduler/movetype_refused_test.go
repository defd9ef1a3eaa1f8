package scheduler_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A message in the queue is no job, so it cannot become an entry of jobs.gated for the time of the
// move. The queue is bound again as it was, and keeps the message. All jobs arrive.
func TestMessageThatIsNoJobPreventsMove(t *testing.T) {
	for from, to := range map[string]string{wire.QueueClassic: wire.QueueQuorum, wire.QueueQuorum: wire.QueueClassic} {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			if to == wire.QueueQuorum {
				needsQuorumPriorities(t, v)
			} else if !v.Features(t).QuorumQueues {
				t.Skip("this broker has no quorum queues")
			}
			s := start(t, v, options{identity: "a"}).leads(t)
			_, err := v.Channel(t).QueueDeclare("queue.q", true, false, false, false, map[string]amqp.Table{
				wire.QueueClassic: {"x-queue-type": from, "x-max-priority": int32(10)}, wire.QueueQuorum: {"x-queue-type": from},
			}[from])
			require.NoError(t, err)
			ensure(t, v, "q")
			jids := names("before", 50)
			publishAll(t, v, "q", jids)
			v.Publish(t, "", "queue.q", amqp.Publishing{Body: []byte("no job"), MessageId: "strange", DeliveryMode: amqp.Persistent})
			schedule(t, v, time.Now(), "q", "scheduled")

			r := moved(t, wire.Command{ID: "m", Queue: "q", Type: to}, s)
			require.Equal(t, wire.StatusConflict, r.Status, "%v", r.Move)
			require.Contains(t, r.Reason, "a message in it cannot be kept in jobs.gated meanwhile")
			require.Equal(t, from, typeOf(t, v, "q"))
			require.Empty(t, s.entries.Paused())

			publishAll(t, v, "q", names("after", 50))
			jids = append(append(jids, names("after", 50)...), "scheduled", "strange")
			w := plainWorker(t, v, "q")
			w.hasCome(t, v, s, jids)
			brokertest.Eventually(t, func() bool { return s.entries.Total(wire.Gated) == 0 && len(s.Status().Held) == 0 }, "nothing waits")
			lost, doubled := w.counts(jids)
			require.Zero(t, lost)
			require.Zero(t, doubled)
			require.Empty(t, rejects(t, s, wire.Gated))
			require.Equal(t, int64(1), s.Status().Counters.Epochs)

			r = moved(t, wire.Command{ID: "again", Queue: "q", Type: to}, s)
			require.Equal(t, wire.StatusOK, r.Status, r.Reason)
			require.Equal(t, to, typeOf(t, v, "q"), "the worker has taken the message")
		})
	}
}

// The node of a queue is away. The command is refused, and changes nothing.
func TestQueueThatIsAwayIsNotMoved(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	ensure(t, v, "q")
	publishAll(t, v, "q", []string{"one"})
	to := wire.QueueClassic
	if v.Features(t).QuorumPriorities {
		to = wire.QueueQuorum
	}
	v.SetQueueState(t, "queue.q", "crashed")
	for _, dry := range []bool{true, false} {
		r := s.ask(t, wire.Command{Command: wire.CommandMoveType, ID: "m", Queue: "q", Type: to, DryRun: dry})
		require.Equal(t, wire.StatusUnavailable, r.Status, "%v", r)
		require.Contains(t, r.Reason, "queue.q")
	}
	require.Empty(t, s.entries.Paused())
	require.Zero(t, journal(t, v)[wire.TypeNoted], "no move has begun")

	v.SetQueueState(t, "queue.q", "live")
	publishAll(t, v, "q", []string{"two"})
	schedule(t, v, time.Now(), "q", "three")
	plainWorker(t, v, "q").gets(t, "one", "two", "three")
	require.Equal(t, "classic", typeOf(t, v, "q"))
	require.Equal(t, int64(1), s.Status().Counters.Epochs)
}
