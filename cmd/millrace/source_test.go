package main

import (
	"context"
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

// A move ends all readers, which begin again, and none that begins later.
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
