package scheduler

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// limited has a client publish a job of the class L, which a limit of one job counts.
func (sc *scene) limited(s *modelSidecar, jid, queue string) {
	sc.t.Helper()
	if s.entries.Limits.Limit("one") == nil {
		d := &wire.Definitions{Source: "test", Limits: []json.RawMessage{json.RawMessage(`{"name":"one","concurrency":1}`)}}
		require.Equal(sc.t, wire.StatusOK, sc.ask(s, wire.Command{Command: wire.CommandDefine, Definitions: d}).Status)
	}
	sc.gated(jid, queue)
	sc.rounds(s, 5, nil)
}

// gated has a client publish a job that limits count, and returns its offset.
func (sc *scene) gated(jid, queue string) int64 {
	job := `{"jid":"` + jid + `","class":"L","queue":"` + queue + `","args":[],"gate":{}}`
	return sc.broker.append(wire.Gated, "client", wire.Message{Key: wire.Gated, Body: []byte(job)})
}

func TestSlotsOfEmptyQueuesAreFreed(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.limited(s, "first", "q")
	sc.limited(s, "second", "q")
	require.Equal(t, map[string]int{"first": 1}, sc.copies(), "there is one slot")

	messages, counted, fails := int64(1), true, false
	a := &slotAudit{entries: s.entries.Reader, between: time.Millisecond, queues: func(context.Context) ([]broker.QueueInfo, error) {
		if fails {
			return nil, broker.ErrLost
		}
		return []broker.QueueInfo{{Name: "queue.q", Messages: messages, Counted: counted, State: "running"}}, nil
	}}
	look := func() []wire.HeldSlot {
		gone, err := a.look(t.Context())
		require.NoError(t, err)
		return gone
	}
	messages = 0
	require.Empty(t, look(), "the slot was seen first just now")
	for at, s := range a.seen {
		s.first -= slotAuditAfter
		a.seen[at] = s
	}
	messages = 1
	require.Empty(t, look(), "a worker has the job, or it is ready")
	fails = true
	require.Empty(t, look(), "the broker does not answer")
	messages, counted, fails = 0, false, false
	require.Empty(t, look(), "the broker has no statistics")
	counted = true
	gone := look()
	require.Len(t, gone, 1)
	require.Equal(t, "first", gone[0].JID)

	require.NoError(t, s.core.limits.freeGone(sc.now, gone))
	sc.rounds(s, 5, nil)
	require.Equal(t, map[string]int{"first": 1, "second": 1}, sc.copies())
	require.Contains(t, a.seen, seenSlot{ledger.ID(gone[0].Stream, gone[0].Offset), 1})
	require.NoError(t, s.core.limits.freeGone(sc.now, gone), "it is free already")
	require.EqualValues(t, 1, s.core.counters.SlotsFreed.Gone)
}
