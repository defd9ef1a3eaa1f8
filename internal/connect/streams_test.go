package connect

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// journal is a transport of which only the journal can be read: one record at an offset, or none.
type journal struct {
	streams.Transport
	record string
	err    error
	takes  time.Duration // until it shows its first record
}

func (j *journal) Name() string { return Native }

func (j *journal) First(ctx context.Context, _ string) (int64, bool, error) {
	if err := pause.For(ctx, j.takes); err != nil {
		return 0, false, err
	}
	return 3, j.record != "", j.err
}

func (j *journal) Last(context.Context, string) (int64, bool, error) {
	return 3, j.record != "", j.err
}

func (j *journal) Fetch(context.Context, string, int64) (wire.Record, error) {
	return wire.Record{Offset: 3, Body: []byte(j.record)}, j.err
}

func (j *journal) Next(context.Context, string, int64) (int64, error) { return 3, j.err }

func TestSameJournal(t *testing.T) {
	lost := errors.New("connection lost")
	for name, test := range map[string]struct {
		native, amqp journal
		want         error
	}{
		"the same":        {journal{record: "a"}, journal{record: "a"}, nil},
		"both empty":      {journal{}, journal{}, nil},
		"other records":   {journal{record: "a"}, journal{record: "b"}, ErrOtherJournal},
		"one is empty":    {journal{}, journal{record: "b"}, ErrOtherJournal},
		"no such stream":  {journal{err: streams.ErrNoStream}, journal{record: "b"}, ErrOtherJournal},
		"cannot be asked": {journal{record: "a"}, journal{err: lost}, lost},
	} {
		require.ErrorIs(t, sameJournal(t.Context(), &test.native, &test.amqp, time.Second), test.want, name)
	}
	require.NoError(t, trust(t.Context(), &journal{record: "a"}, &journal{err: lost}), "it is not known to be another")
}

// Another journal is accepted after it was found several times in a row.
func TestOtherJournalNeedsSeveralReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Broker{AMQPURL: "amqp://u:s3cret@a"}
		err := b.CheckListener(t.Context(), &journal{record: "a"}, &journal{record: "b"}, "rabbitmq-stream://u:s3cret@b")
		require.ErrorIs(t, err, ErrOtherJournal)
		require.EqualError(t, err, "the stream listener at rabbitmq-stream://u:***@b belongs to another broker than AMQP at amqp://u:***@a: their streams job_journal differ")
		require.NoError(t, b.CheckListener(t.Context(), &journal{record: "a"}, &journal{record: "a"}, ""))
		require.NoError(t, b.CheckListener(t.Context(), &journal{record: "a"}, &journal{err: errors.New("lost")}, ""), "it cannot be compared")
	})
}

// A broker that is overloaded is silent for some seconds, and a journal without records always.
func TestSlowJournalIsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Broker
		require.NoError(t, b.CheckListener(t.Context(), &journal{record: "a"}, &journal{record: "a", takes: 3 * time.Second}, ""))
		require.ErrorIs(t, b.CheckListener(t.Context(), &journal{record: "a"}, &journal{takes: time.Hour}, ""), ErrOtherJournal)
	})
}
