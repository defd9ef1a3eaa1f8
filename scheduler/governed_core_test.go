package scheduler

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// governs has a leader govern a queue, and waits for the answer.
func (sc *scene) governs(s *modelSidecar, definition string) {
	sc.t.Helper()
	d := &wire.Definitions{Layer: wire.LayerOperator, Queues: []json.RawMessage{json.RawMessage(definition)}}
	require.Equal(sc.t, wire.StatusOK, sc.ask(s, wire.Command{Command: wire.CommandDefine, Definitions: d}).Status)
}

// carriesOver moves low water to the end of the journal, and forgets what is before it. It returns
// a sidecar that has read the rest.
func (sc *scene) carriesOver(s *modelSidecar, name string) *modelSidecar {
	sc.t.Helper()
	require.NoError(sc.t, s.core.beginCarry(0))
	for s.core.carry.run != nil {
		sc.rounds(s, 1, nil)
	}
	sc.rounds(s, 3, nil)
	stream := sc.broker.streams[wire.Journal]
	needs := int(s.entries.State().Needs)
	stream.records, stream.base = stream.records[needs-stream.base:], needs
	fresh := sc.sidecar(name)
	require.NoError(sc.t, fresh.readAll())
	return fresh
}

// What low water would forget is written again: definitions with all their layers, states, and that
// there is nothing left.
func TestGovernedQueuesAreCarriedOver(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range maxQueuePiece + 3 {
		sc.governs(s, fmt.Sprintf(`{"name":"queue-%03d","key":"args.0","ahead":%d}`, i, i+1))
	}
	sc.ask(s, wire.Command{Command: wire.CommandPause, Governed: "queue-003"})
	sc.rounds(s, 5, nil)
	fresh := sc.carriesOver(s, "fresh")
	require.Len(t, fresh.entries.Governed.GovernedQueues(), maxQueuePiece+3)
	require.Equal(t, s.entries.Governed.GovernedQueues(), fresh.entries.Governed.GovernedQueues())
	require.Equal(t, wire.QueueGoverned, fresh.entries.Governed.GovernedQueue("queue-007").State)
	paused, err := fresh.entries.Governed.GovernedQueue("queue-003").Definition()
	require.NoError(t, err)
	require.True(t, paused.Paused)

	for i := range maxQueuePiece + 3 {
		sc.ask(s, wire.Command{Command: wire.CommandForget, Governed: fmt.Sprintf("queue-%03d", i)})
	}
	sc.rounds(s, 5, nil)
	require.Empty(t, s.entries.Governed.GovernedQueues())
	require.Empty(t, sc.carriesOver(s, "later").entries.Governed.GovernedQueues())
}

// A leader that takes over from a rebuilt view knows which queues are governed, and delivers no
// more than each may have ahead.
func TestRebuiltLeaderKeepsGoverning(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.governs(s, `{"name":"q","ahead":2}`)
	sc.rounds(s, 5, nil)
	fresh := sc.carriesOver(s, "fresh")
	s.disconnect()
	sc.elect(fresh, never)
	sc.rounds(fresh, 8, nil)
	for i := range 5 {
		sc.broker.append(wire.Gated, "client", wire.Message{Exchange: wire.ExchangeDirect, Key: "q", Body: fmt.Appendf(nil, `{"jid":"j%d","class":"C"}`, i)})
	}
	sc.rounds(fresh, 8, nil)
	require.Len(t, sc.copies(), 2, "two are ahead")
	require.Equal(t, wire.QueueGoverned, fresh.entries.Governed.GovernedQueue("q").State)
}
