package streams

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// ErrRelabelled is returned when a reader got wrong offsets. LavinMQ does that to a reader that
// retention has overtaken. Nothing that this reader has delivered can be trusted, from the first
// record on.
var ErrRelabelled = errors.New("records came with wrong offsets")

const (
	// A reader that has caught up is checked again after relabelBytes are delivered or relabelAge
	// has passed. Retention overtakes only readers that are some segments of 8 MiB behind. Such a
	// reader has either stood still, or has that much to read.
	relabelBytes = 4 << 20
	relabelAge   = 10 * time.Second
)

// relabelCheck checks that the record that a reader got for an offset is the record at that offset.
// It checks when the reader has caught up, and periodically from then on. Wrong offsets stay wrong
// until the subscription ends, so it is enough to check the last record.
type relabelCheck struct {
	stream string
	end    int64 // of the stream when the reader began
	fetch  func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	bytes  int64 // delivered since the last check
	looked time.Time
}

// over returns a function that passes records on to deliver, and checks the last of them when a
// check is due.
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
	return c.bytes >= relabelBytes || time.Since(c.looked) >= relabelAge // looked is zero at first
}

func (c *relabelCheck) check(ctx context.Context, given wire.Record) error {
	stands, err := c.fetch(ctx, c.stream, given.Offset)
	switch {
	case errors.Is(err, ErrNotFound): // there is no record at this offset
	case err != nil:
		return err
	case bytes.Equal(stands.Body, given.Body):
		return nil
	}
	return fmt.Errorf("%w: %s, offset %d", ErrRelabelled, c.stream, given.Offset)
}
