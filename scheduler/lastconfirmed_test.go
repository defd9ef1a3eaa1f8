package scheduler

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A leader that lost its connection journals on the next one that it has ended, and the confirms
// that it knows, once.
func TestLastWordsAreJournaledOnNextConnection(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.prepare(t.Context(), conn))
	sc := newScene(t)
	model := sc.leader("a")
	sc.at("j", "q", sc.now)
	require.NoError(t, model.readAll())
	require.NoError(t, model.step(sc.now))
	sc.answer(model)
	s.remember(model.core, false)
	s.knownBy = "a"
	s.sayLastWords(t.Context(), conn, s.takeLastWords())
	require.Nil(t, s.takeLastWords(), "it has said so")
	records := v.ReadStream(t, wire.Journal)
	require.Len(t, records, 1)
	r, err := wire.ParseJournal(records[0].Body)
	require.NoError(t, err)
	require.Equal(t, wire.TypeConfirmed, r.Type)
	require.True(t, r.Ended)
	require.Equal(t, "a", r.Identity)
	require.Equal(t, wire.Through{Epoch: model.core.ledger.Epoch(), Through: model.core.ledger.Watermark()}, wire.Through{Epoch: r.Epoch, Through: r.Through})
	require.Positive(t, r.Through)

	s.unsaid.Store(true)
	broken, cancel := context.WithCancel(t.Context())
	cancel()
	s.sayLastWords(broken, conn, s.takeLastWords())
	require.NotNil(t, s.takeLastWords(), "they are left to the next connection")

	s.remember(model.core, false)
	s.knownAt-- // the view was rolled back since that epoch began, and the newest epoch is another sidecar's
	s.knownBy = "b"
	require.Nil(t, s.takeLastWords(), "another epoch may have the same number")
}
