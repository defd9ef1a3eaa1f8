package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// waiting is a transport whose readers wait until they are ended.
type waiting struct {
	streams.Transport
	reads chan string
}

func (w waiting) Read(ctx context.Context, stream string, _ int64, _ func([]wire.Record) error) error {
	w.reads <- stream
	<-ctx.Done()
	return nil
}

// refusing is a transport that may not read.
type refusing struct{ streams.Transport }

func (refusing) Read(context.Context, string, int64, func([]wire.Record) error) error {
	return fmt.Errorf("streams: %w (response code 16)", streams.ErrRefused)
}

func (refusing) Last(context.Context, string) (int64, bool, error) {
	return 0, false, fmt.Errorf("streams: %w (response code 16)", streams.ErrRefused)
}

func TestSourceNotesRefusals(t *testing.T) {
	var s source
	s.use(refusing{})
	require.ErrorIs(t, s.Read(t.Context(), wire.Heartbeats, 0, nil), streams.ErrRefused)
	require.False(t, s.refused.Load(), "a sidecar can lead without it")
	require.ErrorIs(t, s.Read(t.Context(), wire.Retries, 0, nil), streams.ErrRefused)
	require.True(t, s.refused.Swap(false))
	_, _, err := s.Last(t.Context(), wire.Journal)
	require.ErrorIs(t, err, streams.ErrRefused)
	require.True(t, s.refused.Load())
}

// A move ends all current readers, which begin again, and no later one.
func TestSourceMovesItsReaders(t *testing.T) {
	w := waiting{reads: make(chan string, 2)}
	var s source
	s.use(w)
	s.Move()
	ended := make(chan error, 2)
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		go func() { ended <- s.Read(ctx, "retries", 0, nil) }()
		<-w.reads
	}
	s.Move()
	for range 2 {
		require.ErrorIs(t, <-ended, streams.ErrLost)
	}
	go func() { ended <- s.Read(ctx, "retries", 0, nil) }()
	<-w.reads
	cancel()
	require.NoError(t, <-ended)
}
