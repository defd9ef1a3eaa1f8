package streams

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchLog returns a log, and a channel that receives a value when a reader subscribes or waits for
// a first record.
func watchLog(t testing.TB) (*slog.Logger, <-chan struct{}) {
	reading := make(chan struct{}, 1000)
	return slog.New(&watcher{slog.NewTextHandler(t.Output(), nil), reading}), reading
}

type watcher struct {
	slog.Handler
	reading chan struct{}
}

func (w *watcher) Enabled(context.Context, slog.Level) bool { return true }

func (w *watcher) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "streams: reading" || r.Message == "streams: waiting for a first record" {
		w.reading <- struct{}{}
		return nil
	}
	return w.Handler.Handle(ctx, r)
}

func await(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "it did not happen")
	}
}

const (
	cmdStoreOffset = 10
	cmdQueryOffset = 11
)

// storeOffset makes the broker store the offset of a consumer. RabbitMQ writes a chunk of its own
// into the stream for that.
func storeOffset(t testing.TB, b *testBroker, stream string) {
	t.Helper()
	if !b.hasNative(t) {
		storeTag(t, b, stream)
		return
	}
	p := newNativePublisher(t, b, stream)
	require.NoError(t, p.link.send(newRequest(cmdStoreOffset).str("me").str(stream).u64(0)))
	require.Eventually(t, func() bool {
		_, err := p.link.ask(newRequest(cmdQueryOffset).str("me").str(stream))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// storeTag makes the broker store the offset of a consumer under its tag. LavinMQ does that for a
// consumer that states no offset.
func storeTag(t testing.TB, b *testBroker, stream string) {
	t.Helper()
	ch := b.Channel(t)
	require.NoError(t, ch.Qos(10, 0, false))
	_, err := ch.Consume(stream, "me", false, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.Close())
}
