package view

import (
	"context"

	"github.com/millrace-jobs/millrace/wire"
)

// Source is what a view reads streams from.
type Source interface {
	// Read delivers a stream's records in order from an offset on (-1: from the first one), until
	// ctx ends or something fails.
	Read(ctx context.Context, stream string, from int64, deliver func([]wire.Record) error) error
	// Fetch returns one record. The error wraps streams.ErrNotFound if none came.
	Fetch(ctx context.Context, stream string, offset int64) (wire.Record, error)
	// Next returns the offset of the first record at an offset or behind it. The error wraps
	// streams.ErrNotFound if none came.
	Next(ctx context.Context, stream string, offset int64) (int64, error)
	// First returns the offset of a stream's oldest record. ok is false if the stream is empty. If
	// replicas may differ, First, Last, Next and Fetch ask the stream's leader, because only the
	// leader knows. Read may read from any replica.
	First(ctx context.Context, stream string) (offset int64, ok bool, err error)
	// Last returns the offset of a stream's newest record. ok is false if the stream is empty.
	Last(ctx context.Context, stream string) (offset int64, ok bool, err error)
	// LastIsCheap reports whether Last may be called repeatedly.
	LastIsCheap() bool
}
