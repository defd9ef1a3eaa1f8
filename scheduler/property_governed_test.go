package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// governedAhead is how many jobs of a governed queue are out at most.
const governedAhead = 3

// govern has the leader govern a queue, or end that.
func (w *world) govern(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	cmd := wire.Command{Command: wire.CommandForget, Governed: queue}
	if rapid.IntRange(0, 2).Draw(t, "governs") > 0 {
		most := rapid.SampledFrom([]string{"", `,"max_waiting":3`}).Draw(t, "most")
		one := json.RawMessage(fmt.Sprintf(`{"name":%q,"key":"args.0","ahead":%d%s}`, queue, governedAhead, most))
		cmd = wire.Command{Command: wire.CommandDefine, Definitions: &wire.Definitions{Layer: wire.LayerOperator, Queues: []json.RawMessage{one}}}
	}
	require.NoError(t, s.core.command(w.now, cmd, func(r wire.Reply) {
		require.Contains(w.t, []int{wire.StatusOK, wire.StatusDone, wire.StatusNotFound, wire.StatusDrifted}, r.Status, r.Reason)
	}))
}

// governAndPublish has jobs published at each step of a switch.
func (w *world) governAndPublish(t *rapid.T) {
	w.govern(t)
	for range rapid.IntRange(1, 8).Draw(t, "rounds") {
		w.round()
		w.publish(t)
	}
}

// publish has a client publish jobs to jobs.direct, not to jobs.gated.
func (w *world) publish(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "n") {
		queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
		to := w.broker.directTo(queue)
		if w.broker.missing[queue] {
			w.broker.unbindDirect(queue, ownQueue)
			to = w.broker.directTo(queue)
		}
		own, gated, full := slices.Contains(to, ownQueue), slices.Contains(to, wire.Gated), slices.Contains(to, wire.Full)
		if !w.forgets() && !w.unsafeAlternate {
			require.False(w.t, own && gated || full && gated, "a job for %s goes to several queues: %v", queue, to)
		}
		if w.broker.cutGated && w.broker.caught[queue] {
			require.NotEmpty(w.t, to, "a job for %s is lost, and a leader knows that the alternate exchange is gone", queue)
		}
		w.jids++
		jid := fmt.Sprintf("p%d", w.jids)
		if own {
			w.broker.plainIn[queue]++
		}
		if gated || len(to) == 0 && !w.broker.cutGated {
			class := rapid.SampledFrom([]string{"L", "P"}).Draw(t, "class")
			m := wire.Message{Exchange: wire.ExchangeDirect, Key: queue, Body: fmt.Appendf(nil, `{"jid":%q,"class":%q,"args":[%d]}`, jid, class, w.jids%3)}
			offset := w.broker.append(wire.Gated, "client", m)
			w.broker.sure[wire.Gated] = int(offset) + 1
			w.appended[w.broker.place(wire.Gated, offset)] = &appendedEntry{jid: jid, dues: map[int]time.Time{0: {}}, raw: string(m.Body)}
		}
	}
}

// bindQueue has a worker bind its queue, as those of the specification do when they start.
func (w *world) bindQueue(t *rapid.T) {
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	if !w.broker.missing[queue] {
		w.broker.bindDirect(queue, ownQueue)
	}
	w.publish(t)
}

// olderLeader leaves jobs.gated bound for a governed queue, as leaders of older versions do.
func (w *world) olderLeader(t *rapid.T) {
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	s := w.leader()
	if s == nil || len(w.broker.directTo(queue)) > 0 {
		return
	}
	if q := s.entries.Governed.GovernedQueue(queue); q != nil && q.Governs() && rapid.IntRange(0, 3).Draw(t, "is older") == 0 {
		w.broker.bindDirect(queue, wire.Gated)
		w.unsafeAlternate = true
	}
}

// consume has workers end the jobs that came to a queue without Millrace.
func (w *world) consume(t *rapid.T) {
	queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
	w.broker.plainIn[queue] = 0
}

// tookAhead checks how many jobs of a governed queue are out when one is delivered.
func (w *world) tookAhead(c *copyOf) {
	n := 0
	for p, o := range w.out() {
		if o.queue == c.queue && !w.limited.byHand[p] && w.broker.unsafe[w.placeOf(o)] == "" {
			n++
		}
	}
	require.LessOrEqual(w.t, n, governedAhead, "too many jobs of queue %s are out", c.queue)
}

// checkGoverned requires that each queue is where its definition wants it.
func (w *world) checkGoverned(s *modelSidecar) {
	for _, queue := range []string{"a", "b"} {
		q := s.entries.Governed.GovernedQueue(queue)
		to := w.broker.directTo(queue)
		switch {
		case q == nil && w.forgets():
		case q == nil:
			require.NotContains(w.t, to, wire.Gated, "queue %s is not governed", queue)
			require.NotContains(w.t, to, wire.Full, "queue %s is not governed", queue)
		default:
			require.True(w.t, q.Governs(), "queue %s is still leaving", queue)
			require.Equal(w.t, wire.QueueGoverned, q.State, "queue %s", queue)
			require.Empty(w.t, to, "queue %s", queue)
		}
	}
}
