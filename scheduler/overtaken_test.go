package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// stalled is a fold that stops at the first record until it may go on.
type stalled struct {
	begun, goOn chan struct{}
	last        chan struct{} // closed at the last record
	many        int
	overtaken   []string
}

func (f *stalled) Fold(_ *view.Tx, r *wire.Record) error {
	switch n, _ := strconv.Atoi(string(r.Body[:8])); n {
	case 0:
		close(f.begun)
		<-f.goOn
	case f.many:
		close(f.last)
	}
	return nil
}

func (f *stalled) Commit(*view.Tx) error                 { return nil }
func (f *stalled) Forget(*view.Tx, string) (bool, error) { return true, nil }
func (f *stalled) Overtaken(_ *view.Tx, stream string) error {
	f.overtaken = append(f.overtaken, stream)
	return nil
}

// The fold learns that retention took records which it did not get, even if its reader stays
// connected: the broker says nothing.
func TestRetentionOvertakesConnectedView(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	for name, native := range map[string]bool{"native": true, "AMQP 0-9-1": false} {
		t.Run(name, func(t *testing.T) {
			if native && v.StreamURL() == "" {
				t.Skip("this broker has no stream protocol")
			}
			const body = 100_000
			limit := int64(2 << 20)
			if !v.Features(t).StreamSegmentPolicy {
				limit = 10 << 20 // it deletes segments of 8 MiB
			}
			stream := "overtaken." + name
			ch := v.Channel(t)
			for _, s := range []string{wire.Journal, stream} {
				_, err := ch.QueueDeclare(s, true, false, false, false, amqp.Table{
					"x-queue-type": "stream", "x-max-length-bytes": limit, "x-stream-max-segment-size-bytes": int64(500_000)})
				require.NoError(t, err)
			}
			f := &stalled{begun: make(chan struct{}), goOn: make(chan struct{}), last: make(chan struct{}), many: 5 * int(limit) / body}
			publish := func(n int) {
				raw := make([]byte, body)
				copy(raw, strconv.AppendInt(nil, 100_000_000+int64(n), 10)[1:])
				v.Publish(t, "", stream, amqp.Publishing{Body: raw})
			}
			log := slog.New(slog.NewTextHandler(t.Output(), nil))
			cfg := streams.Config{AMQPURL: v.AMQPURL(), Ahead: 4 * body, Log: log}
			if native {
				cfg.StreamURL = v.StreamURL()
			}
			source, err := streams.Open(t.Context(), cfg)
			require.NoError(t, err)
			defer source.Close()
			store, err := view.Open(view.Config{Identity: name, Log: log})
			require.NoError(t, err)
			defer store.Close()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			publish(0)
			go func() { done <- view.New(store, source, f, log, wire.Journal, stream).Run(ctx) }()
			<-f.begun
			for n := range f.many {
				publish(n + 1)
			}
			close(f.goOn)
			select {
			case <-f.last:
				cancel()
				require.NoError(t, <-done)
				require.Equal(t, []string{stream}, f.overtaken)
			case err := <-done: // LavinMQ gives such a reader wrong offsets
				cancel()
				require.True(t, errors.Is(err, view.ErrRebuild) && v.Features(t).StreamOffsetsDrift, "%v", err)
			}
		})
	}
}
