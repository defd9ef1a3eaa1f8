package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// source is where the view reads streams. Its transport is chosen after the first connection and
// kept, because it remembers what it found.
type source struct {
	transport atomic.Pointer[streams.Transport]
	refused   atomic.Bool // the broker refused to let a stream be read that a leader needs

	mu   sync.Mutex
	move chan struct{} // closed by Move
}

// Move has streams read from the node that the sidecar is connected to now. The node where they are
// read may be cut off without any error.
func (s *source) Move() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.move != nil {
		close(s.move)
		s.move = nil
	}
}

// moves returns a channel that the next Move closes.
func (s *source) moves() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.move == nil {
		s.move = make(chan struct{})
	}
	return s.move
}

var errNotConnected = errors.New("the broker has not been reached yet")

func (s *source) use(t streams.Transport) { s.transport.Store(&t) }

// Read implements view.Source.
func (s *source) Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error {
	t := s.transport.Load()
	if t == nil {
		return errNotConnected
	}
	moves := s.moves()
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-moves:
			stop(streams.ErrMoved)
		case <-reading.Done():
		}
	}()
	err := (*t).Read(reading, stream, from, deliver)
	s.noteRefusal(stream, err)
	if ctx.Err() == nil && reading.Err() != nil {
		return fmt.Errorf("%w: %s: %w", streams.ErrLost, stream, streams.ErrMoved)
	}
	return err
}

// First implements scheduler.Records.
func (s *source) First(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	t := s.transport.Load()
	if t == nil {
		return 0, false, errNotConnected
	}
	return (*t).First(ctx, stream)
}

// Last implements view.Source.
func (s *source) Last(ctx context.Context, stream string) (offset int64, ok bool, err error) {
	t := s.transport.Load()
	if t == nil {
		return 0, false, errNotConnected
	}
	offset, ok, err = (*t).Last(ctx, stream)
	s.noteRefusal(stream, err)
	return offset, ok, err
}

func (s *source) noteRefusal(stream string, err error) {
	if errors.Is(err, streams.ErrRefused) && (stream == wire.Journal || slices.Contains(wire.EntryStreams, stream)) {
		s.refused.Store(true)
	}
}

// LastIsCheap implements view.Source.
func (s *source) LastIsCheap() bool {
	t := s.transport.Load()
	return t != nil && (*t).LastIsCheap()
}

// Fetch returns one record.
func (s *source) Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error) {
	t := s.transport.Load()
	if t == nil {
		return wire.Record{}, errNotConnected
	}
	return (*t).Fetch(ctx, stream, offset)
}

// Next implements view.Source.
func (s *source) Next(ctx context.Context, stream string, offset int64) (int64, error) {
	t := s.transport.Load()
	if t == nil {
		return 0, errNotConnected
	}
	return (*t).Next(ctx, stream, offset)
}

// Close closes the transport.
func (s *source) Close() {
	if t := s.transport.Load(); t != nil {
		_ = (*t).Close() // it writes nothing
	}
}
