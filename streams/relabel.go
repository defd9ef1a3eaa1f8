package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// ErrRelabelled says that a reader was given wrong offsets: LavinMQ does that to one that retention overtook. What it delivered is not to
// be trusted, from the beginning on.
var ErrRelabelled = errors.New("records came with wrong offsets")

const (
	// relabelBytes and relabelAge are how much is delivered, and how much time passes, before a reader that has caught up is looked at
	// again. Retention overtakes a reader that is some segments behind, of 8 MiB each: it has stood still, or has as much before it.
	relabelBytes = 4 << 20
	relabelAge   = 10 * time.Second
)

// relabelCheck looks whether the record that a reader was given as some offset is the one that stands there: once it has caught up, and
// now and then from there on. Wrong offsets stay wrong for as long as a subscription lasts, so that a look at its last record is enough.
type relabelCheck struct {
	stream string
	end    int64 // of the stream when the reader began
	fetch  func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	bytes  int64 // delivered since the last look
	looked time.Time
}

// over passes records on to deliver, and looks at the last of them when it is time to.
func (c *relabelCheck) over(ctx context.Context, deliver func([]wire.Record) error) func([]wire.Record) error {
	return func(records []wire.Record) error {
		for i := range records {
			c.bytes += weight(&records[i])
		}
		last := records[len(records)-1]
		if last.Offset >= c.end && last.Fault == "" && c.isTime() {
			if err := c.check(ctx, last); err != nil {
				return err
			}
			c.bytes, c.looked = 0, time.Now()
		}
		return deliver(records)
	}
}

func (c *relabelCheck) isTime() bool {
	return c.bytes >= relabelBytes || time.Since(c.looked) >= relabelAge // at first, it was never looked
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
