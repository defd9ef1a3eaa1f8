package tracker

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// late is a part that needs only the newest records of its stream.
type late struct {
	shouts
	fails error
}

func (l *late) Start(_ *view.Tx, stream string, last int64) (from int64, known bool, err error) {
	return last - 2, stream == wire.Heartbeats, l.fails
}

// A part may choose where its stream is read from. Other streams are read from the beginning.
func TestPartsChooseTheirStart(t *testing.T) {
	o := newOne(t)
	p := &late{}
	o.Add(p)
	start := func(stream string) (from int64, known bool, err error) {
		require.NoError(t, o.store.Update(func(tx *view.Tx) error {
			from, known, err = o.Start(tx, stream, 9)
			return nil
		}))
		return from, known, err
	}
	for stream, want := range map[string]int64{wire.Heartbeats: 7, wire.JobMetrics: -1, wire.Journal: -1, sched: -1} {
		from, known, err := start(stream)
		require.NoError(t, err)
		require.Equal(t, []any{want, true}, []any{from, known}, stream)
	}
	p.fails = errors.New("no room")
	_, _, err := start(wire.Heartbeats)
	require.ErrorIs(t, err, p.fails)
}

// If the commit of a part fails, nothing of the batch is written.
func TestFailedCommitOfPartEndsBatch(t *testing.T) {
	o := newOne(t)
	p := &shouts{}
	o.Add(p)
	o.fold(wire.Record{Stream: sched, UserID: client, Body: []byte(body(sched, "a", 1))})
	p.fails = errors.New("no room")
	_, err := o.try(wire.Record{Stream: sched, Offset: 1, UserID: client, Body: []byte(body(sched, "b", 1))})
	require.ErrorIs(t, err, p.fails)
	require.Equal(t, []string{"0:a"}, o.pending(sched))
	position, err := o.Position(sched)
	require.NoError(t, err)
	require.Zero(t, position)
}
