package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// testBroker is a vhost, with a channel to write to its streams.
type testBroker struct {
	*brokertest.Vhost
	amqpURL, streamURL string
	ch                 *amqp.Channel
	features           broker.Features
	first              int64 // offset of the first record of a stream
}

func newTestBroker(t testing.TB) *testBroker { return on(t, brokertest.New(t)) }

func on(t testing.TB, v *brokertest.Vhost) *testBroker {
	b := &testBroker{Vhost: v, amqpURL: v.AMQPURL(), streamURL: v.StreamURL(), ch: v.Channel(t)}
	require.NoError(t, b.ch.Confirm(false))
	b.features = v.Features(t)
	b.first = b.features.StreamOffsetBase
	return b
}

// hasNative reports whether the broker speaks the stream protocol. A broker that does not is not
// reachable over it either.
func (b *testBroker) hasNative(t testing.TB) bool {
	t.Helper()
	require.Equal(t, b.features.NativeStreamProtocol, b.streamURL != "", "a RabbitMQ for these tests has the plugin rabbitmq_stream")
	if b.streamURL == "" {
		to, err := parseStreamURL(strings.Replace(b.amqpURL, "amqp", "rabbitmq-stream", 1))
		require.NoError(t, err)
		_, err = dial(t.Context(), Config{}.withDefaults(), to, "asks")
		require.ErrorIs(t, err, ErrLost)
	}
	return b.streamURL != ""
}

// transports returns the transports that the broker supports.
func (b *testBroker) transports() []transportCase {
	if b.streamURL == "" {
		return transportCases[1:]
	}
	return transportCases
}

// stream declares a stream for this test only.
func (b *testBroker) stream(t testing.TB) string {
	name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
	_, err := b.ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
	require.NoError(t, err)
	return name
}

// publish publishes with confirms, in as few round trips as possible.
func (b *testBroker) publish(t testing.TB, stream string, messages ...amqp.Publishing) {
	t.Helper()
	var confirms []*amqp.DeferredConfirmation
	for _, m := range messages {
		c, err := b.ch.PublishWithDeferredConfirm("", stream, false, false, m)
		require.NoError(t, err)
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		require.True(t, c.Wait())
	}
}

// numbered returns n messages with numbers as bodies. In a stream that contains only them, each
// number is the offset.
func (b *testBroker) numbered(from, n int) (messages []amqp.Publishing) {
	for i := range n {
		messages = append(messages, amqp.Publishing{Body: fmt.Append(nil, b.first+int64(from+i))})
	}
	return messages
}

// transportCase is a transport with its name.
type transportCase struct {
	name string
	open func(t testing.TB, b *testBroker, cfg Config) Transport
}

var transportCases = []transportCase{
	{"native", func(t testing.TB, b *testBroker, cfg Config) Transport {
		cfg.StreamURL = b.streamURL
		return openTransport(t, b, cfg)
	}},
	{"amqp", openTransport},
}

func openTransport(t testing.TB, b *testBroker, cfg Config) Transport {
	cfg.AMQPURL = b.amqpURL
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	tr, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

// onBoth runs a test with each transport.
func onBoth(t *testing.T, test func(t *testing.T, b *testBroker, tr Transport)) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, b, Config{})
			require.Equal(t, c.name, tr.Name())
			test(t, b, tr)
		})
	}
}

var errEnough = errors.New("enough")

// readUntil collects records until enough returns true. Like a view, it reads again after every
// loss.
func readUntil(t testing.TB, tr Transport, stream string, from int64, enough func(wire.Record) bool) []wire.Record {
	t.Helper()
	records, err := tryReadUntil(t.Context(), tr, stream, from, enough)
	require.NoError(t, err)
	return records
}

func tryReadUntil(ctx context.Context, tr Transport, stream string, from int64, enough func(wire.Record) bool) (records []wire.Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := tr.Read(ctx, stream, from, func(batch []wire.Record) error {
			if len(batch) == 0 || len(batch) > maxBatch {
				return fmt.Errorf("a batch of %d", len(batch))
			}
			for _, r := range batch {
				if r.Stream != stream {
					return fmt.Errorf("a record of stream %s", r.Stream)
				}
				records = append(records, r)
				from = max(r.Offset, r.Through) + 1
				if enough(r) {
					return errEnough
				}
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
			return records, nil
		case err == nil:
			return nil, fmt.Errorf("only %d records came", len(records))
		case !errors.Is(err, ErrLost):
			return nil, err
		}
	}
}

// readUntilInBackground runs readUntil in the background. The returned function waits for the
// records.
func readUntilInBackground(t testing.TB, tr Transport, stream string, enough func(wire.Record) bool) func() []wire.Record {
	var records []wire.Record
	result := make(chan error, 1)
	go func() {
		var err error
		records, err = tryReadUntil(t.Context(), tr, stream, First, enough)
		result <- err
	}()
	return func() []wire.Record {
		require.NoError(t, <-result)
		return records
	}
}

// reading is a Read that runs in the background.
type reading struct {
	records chan wire.Record
	result  chan error
	cancel  context.CancelFunc
}

func startReading(t testing.TB, tr Transport, stream string, from int64) *reading {
	ctx, cancel := context.WithCancel(t.Context())
	r := &reading{records: make(chan wire.Record, 10_000), result: make(chan error, 1), cancel: cancel}
	go func() {
		r.result <- tr.Read(ctx, stream, from, func(batch []wire.Record) error {
			for _, record := range batch {
				r.records <- record
			}
			return nil
		})
	}()
	t.Cleanup(cancel)
	return r
}

func (r *reading) next(t testing.TB) wire.Record {
	t.Helper()
	select {
	case record := <-r.records:
		return record
	case err := <-r.result:
		require.FailNow(t, "the read ended", "%v", err)
	case <-time.After(10 * time.Second):
		require.FailNow(t, "no record came")
	}
	return wire.Record{}
}

func (r *reading) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.result:
		return err
	case <-time.After(time.Minute):
		require.FailNow(t, "the read does not end")
		return nil
	}
}
