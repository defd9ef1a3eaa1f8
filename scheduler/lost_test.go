package scheduler

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// silent is a stream that delivers no records.
type silent struct {
	first int64
	empty bool
	err   error
}

func (s silent) Fetch(context.Context, string, int64) (wire.Record, error) {
	return wire.Record{}, streams.ErrNotFound
}

func (s silent) Next(context.Context, string, int64) (int64, error) { return 0, streams.ErrNotFound }

func (s silent) Read(context.Context, string, int64, func([]wire.Record) error) error { return s.err }

func (s silent) First(context.Context, string) (int64, bool, error) { return s.first, !s.empty, s.err }

func (s silent) Last(context.Context, string) (int64, bool, error) { return s.first, !s.empty, s.err }

// A record that does not arrive may only be late. An entry is given up if its stream begins after
// it.
func TestEntryIsLostOnlyIfTruncated(t *testing.T) {
	for name, c := range map[string]struct {
		records silent
		lost    bool
	}{
		"it begins behind":        {silent{first: 6}, true},
		"it begins there":         {silent{first: 5}, false},
		"it begins before":        {silent{first: 1}, false},
		"it seems to be empty":    {silent{empty: true}, false},
		"the broker is not there": {silent{first: 6, err: errors.New("lost")}, false},
	} {
		l := &leadership{s: &Scheduler{services: &services{records: c.records}}}
		body, err := l.body(t.Context(), wire.ScheduledJobs, 5)
		require.Nil(t, body, name)
		require.Equal(t, c.lost, err == nil, name)
	}
}
