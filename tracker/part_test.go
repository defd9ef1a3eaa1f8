package tracker

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// shouts is a part that keeps bodies in capitals, and refuses others.
type shouts struct {
	kept      []string
	committed int
	forgotten []string
	fails     error
}

func (*shouts) Streams() []string { return []string{wire.Heartbeats} }

func (s *shouts) Fold(_ *view.Tx, r *wire.Record) (reason string, refused []byte, err error) {
	if s.fails != nil {
		return "", nil, s.fails
	}
	if !bytes.Equal(bytes.ToUpper(r.Body), r.Body) {
		return "it whispers", r.Body[:1], nil
	}
	s.kept = append(s.kept, string(r.Body))
	return "", nil, nil
}

func (s *shouts) Commit(*view.Tx) error { s.committed++; return s.fails }

func (s *shouts) Forget(_ *view.Tx, stream string) error {
	s.forgotten = append(s.forgotten, stream)
	return s.fails
}

// seen is an observer.
type seen []string

func (s *seen) Observe(_ *view.Tx, r *wire.Record) { *s = append(*s, r.Stream) }

// A part gets only the records of its streams. Records that it refuses are listed with other
// rejected records. Its errors end the view.
func TestParts(t *testing.T) {
	o := newOne(t)
	p, observed := &shouts{}, &seen{}
	o.Add(p)
	o.SetObserver(observed)
	heartbeat := func(offset int64, body string) wire.Record {
		return wire.Record{Stream: wire.Heartbeats, Offset: offset, UserID: client, Body: []byte(body)}
	}
	faulty := heartbeat(3, "LOST")
	faulty.Fault = "it could not be read"
	o.fold(heartbeat(1, "LOUD"), heartbeat(2, "quiet"), faulty, heartbeat(4, "LOUDER"))
	o.fold(wire.Record{Stream: sched, UserID: client, Body: []byte(body(sched, "a", 1))})
	require.Equal(t, []string{"LOUD", "LOUDER"}, p.kept)
	require.Positive(t, p.committed)
	var listed []Reject
	require.NoError(t, o.Rejects(wire.Heartbeats, func(r Reject) bool {
		listed = append(listed, r)
		return true
	}))
	require.Len(t, listed, 2)
	require.Equal(t, []string{"it could not be read", "it whispers", "q"}, []string{listed[0].Reason, listed[1].Reason, string(listed[1].Body)})
	require.Contains(t, *observed, wire.Heartbeats)
	require.Contains(t, *observed, sched)

	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		from, known, err := o.Start(tx, wire.Heartbeats, 9)
		require.Equal(t, []any{int64(-1), true}, []any{from, known}, "the part chooses no start")
		if err != nil {
			return err
		}
		_, err = o.Forget(tx, wire.Heartbeats)
		return err
	}))
	require.Equal(t, []string{wire.Heartbeats}, p.forgotten)

	p.fails = errors.New("no room")
	_, err := o.try(heartbeat(5, "LOUD"))
	require.ErrorIs(t, err, p.fails)
	require.Len(t, p.kept, 2)
	require.ErrorIs(t, o.store.Update(func(tx *view.Tx) error {
		_, err := o.Forget(tx, wire.Heartbeats)
		return err
	}), p.fails)
}
