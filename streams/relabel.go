package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/millrace-jobs/millrace/wire"
)

// ErrRelabelled says that a reader was given wrong offsets: LavinMQ does that to one that retention overtook. What it delivered is not to
// be trusted, from the beginning on.
var ErrRelabelled = errors.New("records came with wrong offsets")

// relabelCheck looks, once a reader has caught up, whether the record that it was given as some offset is the one that stands there.
type relabelCheck struct {
	stream string
	end    int64 // of the stream when the reader began
	fetch  func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	done   bool
}

// over passes records on to deliver, and checks the first that stands at or behind the end.
func (c *relabelCheck) over(ctx context.Context, deliver func([]wire.Record) error) func([]wire.Record) error {
	return func(records []wire.Record) error {
		last := records[len(records)-1]
		if c.done || last.Offset < c.end || last.Fault != "" {
			return deliver(records)
		}
		c.done = true
		if err := c.check(ctx, last); err != nil {
			return err
		}
		return deliver(records)
	}
}

func (c *relabelCheck) check(ctx context.Context, given wire.Record) error {
	stands, err := c.fetch(ctx, c.stream, given.Offset)
	switch {
	case errors.Is(err, ErrNotFound): // nothing stands where a record was said to be
	case err != nil:
		return err
	case bytes.Equal(stands.Body, given.Body):
		return nil
	}
	return fmt.Errorf("%w: %s, offset %d", ErrRelabelled, c.stream, given.Offset)
}
