package view

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// starter records what it folds, and decides where the stream "late" begins.
type starter struct {
	mu    sync.Mutex
	got   []string
	from  int64
	known bool
	asked int
	fault error
	hold  bool
}

func (s *starter) Fold(_ *Tx, r *wire.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, r.Stream+" "+string(r.Body))
	return nil
}

func (s *starter) Commit(tx *Tx) error {
	if s.hold {
		tx.HoldPosition("late")
	}
	return nil
}

func (s *starter) Start(_ *Tx, _ string, _ int64) (int64, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.from, s.known || s.asked > 1, s.fault
}

func (s *starter) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.got...)
}

func followed(store *Store, m *memory, s *starter) (v *View, stop func(), ended chan error) {
	v = New(store, m, s, slog.New(slog.DiscardHandler), "journal", "late", "early")
	v.After("late", "early")
	ctx, cancel := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	return v, cancel, ended
}

func TestStreamWaitsForItsStart(t *testing.T) {
	store, err := Open(Config{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer store.Close()
	m := newMemory("journal", "early", "late")
	m.append("early", "a", "b", "c", "d")
	m.append("late", "0", "1", "2")
	m.upTo = map[string]int64{"early": 1}
	s := &starter{from: 2, hold: true} // at first the starter does not know the start
	v, stop, ended := followed(store, m, s)
	require.Eventually(t, func() bool { return len(s.seen()) == 2 }, time.Minute, time.Millisecond)
	require.Equal(t, []string{"early a", "early b"}, s.seen(), "the stream late waits")
	m.change(func() { m.upTo = nil })
	<-v.Ready()
	require.Eventually(t, func() bool { return len(s.seen()) == 5 }, time.Minute, time.Millisecond)
	require.Equal(t, []string{"early a", "early b", "early c", "early d", "late 2"}, s.seen())
	stop()
	require.NoError(t, <-ended)
	at, err := store.Position("late")
	require.NoError(t, err)
	require.EqualValues(t, -1, at, "the position does not move")

	again := &starter{from: 3, known: true} // the store has all records already
	v, stop, ended = followed(store, m, again)
	<-v.Ready()
	stop()
	require.NoError(t, <-ended)
	require.Empty(t, again.seen())
}

func TestFailingStarterEndsView(t *testing.T) {
	store, err := Open(Config{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer store.Close()
	broken := errors.New("broken")
	_, stop, ended := followed(store, newMemory("journal", "early", "late"), &starter{fault: broken})
	defer stop()
	require.ErrorIs(t, <-ended, broken)
}
