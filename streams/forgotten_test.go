package streams

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// RabbitMQ deletes the old segments of a stream, and updates the stream's first offset a moment
// later. A reader that reaches the end of its segment between the two gets no records any more,
// however many are written. This test makes that moment last.
func TestForgottenReader(t *testing.T) {
	b := on(t, brokertest.Erlang(t))
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := "forgotten-" + c.name
			_, err := b.ch.QueueDeclare(stream, true, false, false, false, amqp.Table{
				"x-queue-type": "stream", "x-max-length-bytes": int64(1 << 30), "x-stream-max-segment-size-bytes": int64(500_000)})
			require.NoError(t, err)
			b.write(t, stream, 0, 1)
			tr := c.open(t, b, Config{Ahead: 4 * overtakenBody, Quiet: 100 * time.Millisecond})
			begun, proceed, given := make(chan struct{}), make(chan struct{}), make(chan int, 1000)
			result := make(chan error, 1)
			go func() {
				result <- tr.Read(t.Context(), stream, First, func(batch []wire.Record) error {
					for _, r := range batch {
						if given <- numberIn(r); numberIn(r) == 0 {
							close(begun)
							<-proceed
						}
						if numberIn(r) == 49 {
							return errEnough
						}
					}
					return nil
				})
			}()
			await(t, begun)
			b.write(t, stream, 1, 39)
			b.deleteSegments(t, stream)
			close(proceed)
			brokertest.Eventually(t, func() bool { return len(given) > 3 }, "it reads on, to its segment's end")
			// A new segment begins, and the broker looks up the first offset of the stream.
			b.write(t, stream, 40, 10)
			select {
			case err := <-result:
				require.Equal(t, errEnough, err)
			case <-time.After(time.Minute):
				require.FailNow(t, "it reads no more")
			}
		})
	}
}

// deleteSegments deletes all segments of a stream but the newest.
func (b *testBroker) deleteSegments(t testing.TB, stream string) {
	t.Helper()
	require.Equal(t, "ok", b.Eval(t, fmt.Sprintf(`begin {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)),
		{ok, Dir} = application:get_env(osiris, data_dir),
		Files = lists:sort(filelib:wildcard(filename:join([Dir, maps:get(name, amqqueue:get_type_state(Q)), "*.segment"]))),
		[begin ok = file:delete(filename:rootname(F) ++ E) end || F <- lists:droplast(Files), E <- [".index", ".segment"]], ok end.`,
		b.Vhost.Name, stream)))
}
